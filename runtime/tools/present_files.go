package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"deerbot/runtime/sandbox"
	"deerbot/store"
)

const presentMax = 20 // files per call

type presentFilesArgs struct {
	Paths []string `json:"paths" jsonschema:"absolute paths of finished files under /mnt/user-data/outputs"`
}

func newPresentFiles() (Tool, error) {
	return New(Spec{
		Name: "present_files",
		Description: "Deliver finished files to the people in the chat. They must lie under /mnt/user-data/outputs, exist, be regular files " +
			"and not be empty; at most 20 per call. Call it once a file is finished: files that are not presented are not delivered. " +
			"Either all files of a call are presented or none.",
		Timeout: fileTimeout,
		Line: lineOf(func(a presentFilesArgs) string {
			var names []string
			for _, p := range a.Paths {
				names = append(names, path.Base(p))
			}
			return strings.Join(names, ", ")
		}),
	}, presentFiles, func(s *jsonschema.Schema) {
		p := s.Properties["paths"]
		one, most := 1, presentMax
		p.MinItems, p.MaxItems = &one, &most
	})
}

func presentFiles(ctx context.Context, env *Env, args presentFilesArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	var (
		res  Result
		errs []error
		done []string
		list strings.Builder
	)
	for _, p := range args.Paths {
		c, err := sandbox.Clean(p)
		if err == nil && slices.Contains(done, c) {
			continue
		}
		var a store.Artifact
		if err == nil {
			done = append(done, c)
			a, err = ArtifactOf(ctx, env.Files, c)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		res.Artifacts = append(res.Artifacts, a)
		fmt.Fprintf(&list, "\n%s (%s, %s)", sandbox.Printable(a.Path), a.MIME, bytesText(a.Size))
	}
	if len(errs) > 0 {
		return Result{}, fmt.Errorf("nothing was presented: %w", errors.Join(errs...))
	}
	res.Content = "presented " + plural(len(res.Artifacts), "file") + ":" + list.String()
	return res, nil
}

// ArtifactOf describes a file under outputs as it is now, for present_files and for outputs that no call presented. Files
// that are empty, not regular or reached by a link out of outputs are refused. ID, ThreadID, RunID and CreatedAt are left
// to the runtime.
func ArtifactOf(ctx context.Context, f *sandbox.Files, p string) (store.Artifact, error) {
	if !sandbox.Under(p, sandbox.Outputs) || p == sandbox.Outputs {
		return store.Artifact{}, fmt.Errorf("%s: only files under %s can be presented; copy it there first", sandbox.Printable(p), sandbox.Outputs)
	}
	in, err := f.OpenIn(sandbox.Outputs, p)
	if err != nil {
		return store.Artifact{}, missing(f, p, err)
	}
	defer func() { _ = in.Close() }()
	head := make([]byte, 512)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return store.Artifact{}, err
	}
	if n == 0 {
		return store.Artifact{}, fmt.Errorf("%s is empty", sandbox.Printable(p))
	}
	h := sha256.New()
	h.Write(head[:n])
	rest, err := io.Copy(h, &ctxReader{ctx, in})
	if err != nil {
		return store.Artifact{}, err
	}
	return store.Artifact{
		Path: p, Name: path.Base(p), MIME: sandbox.TypeOf(p, head[:n]), Size: int64(n) + rest, SHA256: hex.EncodeToString(h.Sum(nil)),
	}, nil
}

// ctxReader ends a long read with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
