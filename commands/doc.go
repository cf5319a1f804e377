// Package commands understands and carries out what people type with a leading slash.
//
// [Parse] tells a command from a message; it is the only place that knows the grammar. [Commands] is the registry: names,
// usage, help, and who may use what when. [Handle] carries a command out on a [Session], which the conductor provides;
// nothing here knows a platform, a run or a store.
package commands
