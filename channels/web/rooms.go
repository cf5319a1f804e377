package web

import (
	"slices"
	"sync"
)

// rooms holds a lock and the listeners of every conversation in use.
//
// Whoever writes a message holds the room's lock from the write to the publication, and whoever starts to listen holds it
// from reading what was missed to joining. So listeners get every revision once and in order.
type rooms struct {
	mu sync.Mutex
	m  map[string]*room
}

type room struct {
	mu   sync.Mutex
	subs []*subscriber
	refs int // guarded by rooms.mu
}

// queue is how many events a listener may be behind. One that is further behind is dropped; it comes back with the last
// revision it saw.
const queue = 64

type subscriber struct {
	events chan event // closed when dropped
}

// event is one server-sent event, ready for the wire.
type event struct {
	id   uint64 // revision, 0 for none
	name string
	data []byte
}

// lock returns the room of chat, locked. The caller must call unlock.
func (r *rooms) lock(chat string) *room {
	r.mu.Lock()
	if r.m == nil {
		r.m = map[string]*room{}
	}
	rm := r.m[chat]
	if rm == nil {
		rm = &room{}
		r.m[chat] = rm
	}
	rm.refs++
	r.mu.Unlock()
	rm.mu.Lock()
	return rm
}

func (r *rooms) unlock(chat string, rm *room) {
	rm.mu.Unlock()
	r.release(chat, rm)
}

func (r *rooms) release(chat string, rm *room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rm.refs--; rm.refs == 0 {
		delete(r.m, chat)
	}
}

// join adds a listener to a locked room; the room lives on until leave.
func (r *rooms) join(rm *room) *subscriber {
	s := &subscriber{events: make(chan event, queue)}
	rm.subs = append(rm.subs, s)
	r.mu.Lock()
	rm.refs++
	r.mu.Unlock()
	return s
}

// leave takes the listener out. The room must not be locked by the caller.
func (r *rooms) leave(chat string, rm *room, s *subscriber) {
	rm.mu.Lock()
	rm.drop(s)
	rm.mu.Unlock()
	r.release(chat, rm)
}

// publish gives ev to all listeners of the locked room.
func (rm *room) publish(ev event) {
	for _, s := range slices.Clone(rm.subs) {
		select {
		case s.events <- ev:
		default:
			rm.drop(s)
		}
	}
}

func (rm *room) drop(s *subscriber) {
	if i := slices.Index(rm.subs, s); i >= 0 {
		rm.subs = slices.Delete(rm.subs, i, i+1)
		close(s.events)
	}
}
