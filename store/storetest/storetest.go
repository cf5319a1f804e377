// Package storetest is the conformance suite of deerbot's storage engines: what store.Store promises, as tests. An engine
// that passes [Run] can be put under the rest of the program.
//
// The suite sees an engine through store.Store alone. Durability against crashes, damaged files and full disks has to be
// tested where the engine lives, because how these happen is the engine's own.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"deerbot/store"
)

// Engine is an engine under test.
type Engine struct {
	// Open opens the data that belongs to tb, which is empty at first. Called again with the same tb after the store was
	// closed, it opens the same data. The suite closes what it opened.
	Open func(tb testing.TB) store.Store
}

// group is a named set of tests.
type group struct {
	name  string
	tests []test
}

type test struct {
	name string
	fn   func(t *env)
}

// Run runs the whole suite over e.
func Run(t *testing.T, e Engine) {
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.fn(open(t, e))
				})
			}
		})
	}
}

func groups() []group {
	return []group{
		{"Inbox", inboxTests},
		{"Conversations", conversationTests},
		{"Threads", threadTests},
		{"Runs", runTests},
		{"WriteRun", writeRunTests},
		{"Outbox", outboxTests},
		{"Usage", usageTests},
		{"Users", userTests},
		{"Schedules", scheduleTests},
		{"ChatLog", chatLogTests},
		{"Life", lifeTests},
		{"Engine", engineTests},
		{"Cases", caseTests},
		{"Models", modelTests},
	}
}

// env is one test with a fresh store.
type env struct {
	*testing.T
	store.Store
	engine Engine
	ctx    context.Context
}

func open(t *testing.T, e Engine) *env {
	t.Helper()
	v := &env{T: t, engine: e, Store: e.Open(t), ctx: t.Context()}
	t.Cleanup(func() {
		if err := v.Store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return v
}

// Run is the store's, not the test's.
func (v *env) Run(ctx context.Context, id string) (store.Run, error) { return v.Store.Run(ctx, id) }

// reopen closes the store and opens its data again.
func (v *env) reopen() {
	v.Helper()
	v.ok(v.Store.Close())
	v.Store = v.engine.Open(v.T)
}

// ok fails the test on an error.
func (v *env) ok(err error) {
	v.Helper()
	if err != nil {
		v.Fatalf("error: %v", err)
	}
}

// is fails the test unless err is target.
func (v *env) is(err, target error) {
	v.Helper()
	if !errors.Is(err, target) {
		v.Fatalf("error is %v, want %v", err, target)
	}
}

// same compares; nil and empty lists are the same.
func (v *env) same(got, want any) {
	v.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); d != "" {
		v.Fatalf("-want +got\n%s", d)
	}
}

// must returns a value that has to be there.
func must[T any](got T, err error) func(v *env) T {
	return func(v *env) T {
		v.Helper()
		v.ok(err)
		return got
	}
}

// base is when tests happen. It has nanoseconds, which engines must keep.
var base = time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)

// at is base plus some seconds.
func at(seconds int) time.Time { return base.Add(time.Duration(seconds) * time.Second) }

// newID is a UUIDv7, as callers use.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// chat is a conversation in which a test may talk.
func chat(name string) store.ConversationKey {
	return store.ConversationKey{Channel: "telegram", Workspace: "bot1", Chat: name}
}

// big is a JSON string of more than n bytes.
func big(n int) json.RawMessage {
	b := make([]byte, n+2)
	for i := range b {
		b[i] = 'x'
	}
	b[0], b[len(b)-1] = '"', '"'
	return b
}

// list maps records to what a test looks at.
func list[T, U any](in []T, f func(T) U) []U {
	out := make([]U, 0, len(in))
	for _, e := range in {
		out = append(out, f(e))
	}
	return out
}
