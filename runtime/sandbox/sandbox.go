// Package sandbox is where tools act: the path contract and the file tree of a thread.
//
// # The path contract
//
// The model, the tools and everything that is shown to people speak of virtual paths only:
//
//	/mnt/user-data/uploads     files people sent, one directory per message
//	/mnt/user-data/workspace   scratch space, kept between runs of a thread
//	/mnt/user-data/outputs     finished files, the only ones that may be delivered
//	/mnt/skills/...            read-only mounts, when configured
//
// [Files] maps them to directories of the host through [os.Root], so what a path means is decided by the kernel while it
// is opened and not by comparing strings before: a link that leads out of its tree is refused even when its target does
// not exist yet, and a link that stays inside works. It does not matter whether the tree itself is reached through a
// link. Links with an absolute target are always refused.
//
// No error of this package holds a host path: see [PathError].
package sandbox

// Virtual directories.
const (
	Root      = "/mnt/user-data"
	Uploads   = Root + "/uploads"
	Workspace = Root + "/workspace"
	Outputs   = Root + "/outputs"
	Skills    = "/mnt/skills"
	// ToolResults holds tool output that was too long for the history. It came from tools, so from outside as often as not.
	ToolResults = Workspace + "/.tool-results"
	// Downloads holds what web_fetch saved.
	Downloads = Workspace + "/downloads"
)

// Limits of paths.
const (
	MaxPath = 1024 // bytes of a virtual path
	MaxName = 255  // bytes of one element
)
