package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"deerbot/internal/wire/telegram"
)

const help = `TEXT               say it (commands for the bot begin with / as in Telegram)
:reply N TEXT      reply to message N
:edit N TEXT       change message N
:press N LABEL     press a button of message N
:file PATH [TEXT]  send a file
:delete N          delete message N
:as NAME           be somebody else
:dm | :group TITLE | :forum TITLE | :topic NAME | :go ID     change the place
:chats  :show      list the chats, show this one again
:calls [N]         the last calls of the bot
:down  :up  :cut   make the server unreachable, reachable; cut connections
:quit
`

// terminal is one place of the world, seen by one person.
type terminal struct {
	s *telegram.Server

	mu    sync.Mutex // guards what follows and the output
	out   io.Writer
	user  *telegram.User
	chat  *telegram.Chat
	topic int
	users map[string]*telegram.User
	seen  map[int64]map[int]string // what was printed of each message
}

func newTerminal(s *telegram.Server, out io.Writer) *terminal {
	t := &terminal{s: s, out: out, users: make(map[string]*telegram.User), seen: make(map[int64]map[int]string)}
	t.user = t.person("ann")
	t.chat = s.DM(t.user)
	return t
}

func (t *terminal) person(name string) *telegram.User {
	key := strings.ToLower(name)
	if t.users[key] == nil {
		t.users[key] = t.s.Person(name, key)
	}
	return t.users[key]
}

// watch prints what changes in the chat until ctx ends.
func (t *terminal) watch(ctx context.Context) {
	for t.s.WaitFor(ctx, t.news) == nil {
	}
}

// news prints the messages of all chats that changed and reports whether there were any.
func (t *terminal) news() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	printed := false
	for _, ch := range t.s.Chats() {
		seen := t.seen[ch.ID()]
		if seen == nil {
			seen = make(map[int]string)
			t.seen[ch.ID()] = seen
		}
		here := make(map[int]bool)
		for _, m := range ch.Messages() {
			here[m.ID] = true
			text := render(m)
			if old, ok := seen[m.ID]; old == text && ok {
				continue
			}
			seen[m.ID] = text
			fmt.Fprintf(t.out, "%s%s\n", where(ch, t.chat), text)
			printed = true
		}
		for id := range seen {
			if !here[id] {
				delete(seen, id)
				fmt.Fprintf(t.out, "%s#%d was deleted\n", where(ch, t.chat), id)
				printed = true
			}
		}
	}
	return printed
}

func where(ch, here *telegram.Chat) string {
	if ch == here {
		return ""
	}
	return fmt.Sprintf("[%d] ", ch.ID())
}

// read obeys lines until the end of in; it reports whether to quit.
func (t *terminal) read(ctx context.Context, in io.Reader) bool {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && ctx.Err() == nil {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == ":quit" {
			return true
		}
		if err := t.obey(line); err != nil {
			t.say("! %v\n", err)
		}
	}
	return false
}

func (t *terminal) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

var errUsage = errors.New("not understood, :help lists what is")

// obey does what a line says.
func (t *terminal) obey(line string) error {
	if line == "" {
		return nil
	}
	if !strings.HasPrefix(line, ":") {
		t.chat.Say(t.user, strings.ReplaceAll(line, `\n`, "\n"), telegram.InTopic(t.topic))
		return nil
	}
	word, rest, _ := strings.Cut(line[1:], " ")
	switch word {
	case "help":
		t.say("%s", help)
	case "as":
		t.user = t.person(rest)
	case "dm", "group", "forum", "topic", "go":
		return t.move(word, rest)
	case "chats":
		for _, ch := range t.s.Chats() {
			t.say("%d %s, %d messages\n", ch.ID(), ch.Kind(), len(ch.Messages()))
		}
	case "show":
		for _, m := range t.chat.Messages() {
			t.say("%s\n", render(m))
		}
	case "calls":
		t.calls(rest)
	case "down", "up":
		t.s.SetDown(word == "down")
	case "cut":
		t.s.Cut()
	case "file":
		return t.file(rest)
	default:
		return t.message(word, rest)
	}
	return nil
}

// message obeys what is about one message.
func (t *terminal) message(word, rest string) error {
	first, text, _ := strings.Cut(rest, " ")
	id, err := strconv.Atoi(strings.TrimPrefix(first, "#"))
	if err != nil {
		return errUsage
	}
	switch word {
	case "reply":
		t.chat.Say(t.user, text, telegram.InTopic(t.topic), telegram.ReplyTo(id))
	case "edit":
		t.chat.Edit(id, text)
	case "delete":
		t.chat.Remove(id)
	case "press":
		_, err := t.chat.Press(t.user, id, text)
		return err
	default:
		return errUsage
	}
	return nil
}

func (t *terminal) move(word, rest string) error {
	chat, topic := t.chat, 0
	switch word {
	case "dm":
		chat = t.s.DM(t.user)
	case "group":
		chat = t.s.Supergroup(rest)
	case "forum":
		chat = t.s.Forum(rest)
	case "topic":
		if !chat.IsForum() {
			return errors.New("this is not a forum")
		}
		topic = chat.Topic(t.user, rest)
	case "go":
		id, err := strconv.ParseInt(rest, 10, 64)
		if chat = t.s.Chat(id); err != nil || chat == nil {
			return errors.New("no such chat")
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chat, t.topic = chat, topic
	fmt.Fprintf(t.out, "now in %d, topic %d\n", chat.ID(), topic)
	return nil
}

func (t *terminal) file(rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	t.chat.Say(t.user, text, telegram.InTopic(t.topic), telegram.Document(filepath.Base(name), "application/octet-stream", data))
	return nil
}

func (t *terminal) calls(rest string) {
	n, err := strconv.Atoi(rest)
	if err != nil {
		n = 10
	}
	calls := t.s.Calls("", 0)
	for _, c := range calls[max(0, len(calls)-n):] {
		t.say("%s %s chat %d: %d %s\n", c.At.Format("15:04:05.000"), c.Method, c.Chat, c.Code, c.Description)
	}
	var counts []string
	for k, v := range t.s.Counts() {
		counts = append(counts, fmt.Sprintf("%s: %d", k, v))
	}
	sort.Strings(counts)
	t.say("%s\n", strings.Join(counts, ", "))
}
