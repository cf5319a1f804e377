package sandbox

import (
	"mime"
	"net/http"
	"path"
	"strings"
)

// types is a fixed table, so that the answer does not depend on the host's mime.types.
var types = map[string]string{
	".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown", ".markdown": "text/markdown",
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".html": "text/html", ".htm": "text/html",
	".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".xml": "text/xml",
	".json": "application/json", ".jsonl": "application/jsonl", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".svg": "image/svg+xml", ".ics": "text/calendar", ".vcf": "text/vcard",
	".rtf": "application/rtf", ".tex": "application/x-tex", ".eml": "message/rfc822", ".sql": "application/sql",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".odt":  "application/vnd.oasis.opendocument.text", ".ods": "application/vnd.oasis.opendocument.spreadsheet",
	".odp":  "application/vnd.oasis.opendocument.presentation",
	".epub": "application/epub+zip", ".jar": "application/java-archive", ".apk": "application/vnd.android.package-archive",
	".doc": "application/msword", ".xls": "application/vnd.ms-excel", ".ppt": "application/vnd.ms-powerpoint",
	".7z": "application/x-7z-compressed", ".tar": "application/x-tar", ".bz2": "application/x-bzip2",
	".xz": "application/x-xz", ".zst": "application/zstd", ".sqlite": "application/vnd.sqlite3",
	".parquet": "application/vnd.apache.parquet", ".m4a": "audio/mp4", ".aac": "audio/aac", ".flac": "audio/flac",
	".opus": "audio/ogg", ".mp3": "audio/mpeg", ".mov": "video/quicktime", ".mkv": "video/x-matroska",
	".heic": "image/heic", ".avif": "image/avif", ".tiff": "image/tiff", ".tif": "image/tiff",
}

// sniffed maps what the standard library recognises to an extension.
var sniffed = map[string]string{
	"text/plain": ".txt", "text/html": ".html", "text/xml": ".xml", "application/pdf": ".pdf", "image/jpeg": ".jpg",
	"image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp", "image/x-icon": ".ico",
	"audio/mpeg": ".mp3", "audio/wave": ".wav", "audio/aiff": ".aiff", "audio/midi": ".mid", "audio/basic": ".au",
	"application/ogg": ".ogg", "video/mp4": ".mp4", "video/webm": ".webm", "video/avi": ".avi",
	"application/zip": ".zip", "application/x-gzip": ".gz", "application/x-rar-compressed": ".rar",
	"application/postscript": ".ps", "application/wasm": ".wasm", "font/ttf": ".ttf", "font/otf": ".otf",
	"font/woff": ".woff", "font/woff2": ".woff2", "font/collection": ".ttc",
}

// sniff names the type of content by its first bytes, without parameters.
func sniff(head []byte) string {
	t, _, err := mime.ParseMediaType(http.DetectContentType(head))
	if err != nil {
		return "application/octet-stream"
	}
	return t
}

// extension is what a nameless file of this content is called: ".jpg", or "" when nothing is recognised.
func extension(head []byte) string {
	if len(head) == 0 {
		return ""
	}
	return sniffed[sniff(head)]
}

// TypeOf names the media type of a file by the first bytes of its content. The name's extension only refines what
// content leaves open: which text, which kind of zip, or an unknown format. A PNG called .html stays image/png.
func TypeOf(name string, head []byte) string {
	got := sniff(head)
	byName := types[strings.ToLower(path.Ext(name))]
	if byName == "" {
		return got
	}
	zipped := strings.Contains(byName, "openxml") || strings.Contains(byName, "opendocument") ||
		byName == types[".epub"] || byName == types[".jar"] || byName == types[".apk"]
	textual := IsText(byName)
	switch {
	case strings.HasPrefix(got, "text/") && textual,
		got == "application/zip" && zipped,
		got == "application/ogg" && strings.HasPrefix(byName, "audio/"),
		got == "video/mp4" && (byName == types[".m4a"] || byName == types[".mov"] || byName == types[".heic"] || byName == types[".avif"]),
		got == "application/octet-stream" && !textual && !zipped:
		return byName
	}
	return got
}

// IsText reports whether a media type, parameters and all, is text that can be read as it is.
func IsText(mediaType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	t = strings.TrimSpace(t)
	if strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+yaml") {
		return true
	}
	switch t {
	case "application/json", "application/jsonl", "application/ndjson", "application/x-ndjson", "application/yaml",
		"application/x-yaml", "application/toml", "application/xml", "application/javascript", "application/x-javascript",
		"application/ecmascript", "application/sql", "application/x-tex", "application/rtf", "message/rfc822",
		"application/x-sh", "application/graphql":
		return true
	}
	return false
}
