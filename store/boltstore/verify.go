package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"syscall"
)

// bbolt's file format, as far as verify reads it: a page begins with its id (8 bytes), flags (2), count (2) and the
// number of pages that follow it (4); branch elements are position (4), key size (4), page (8); leaf elements flags (4),
// position (4), key size (4), value size (4). A position counts from its element. A bucket's value begins with its root
// page (8) and sequence (8), and goes on with a page when the root is 0.
const (
	pageHeader  = 16
	elementSize = 16
	bucketSize  = 16
	flagBranch  = 1
	flagLeaf    = 2
	flagFree    = 16
	noFreelist  = ^uint64(0)
	leafBucket  = 1
	boltMagic   = 0xED0CDAED
	maxDepth    = 64
)

var errMeta = errors.New("no valid meta page")

// verify walks every page that is in use. bbolt does the same when it opens a file whose free list is not stored, but ends
// the process when a page is garbage, so it must not see such a file. The caller holds the file's lock.
func verify(f *os.File, size int64) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil { // a page that cannot be read
			err = fmt.Errorf("%v", p)
		}
	}()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Munmap(data) }()
	v := &verifier{data: data}
	if err := v.meta(); err != nil {
		return err
	}
	if err := v.pages(v.root, nil, nil, 0); err != nil {
		return err
	}
	return v.freelist()
}

type verifier struct {
	data []byte
	size uint64 // of a page
	root uint64
	high uint64 // first page that was never used
	free uint64 // page of the free list
	seen []bool
}

// meta finds the newer valid one of the two meta pages, of which a torn write spoils one at most.
func (v *verifier) meta() error {
	var txid uint64
	for _, at := range []int{0, os.Getpagesize(), 4096, 8192, 16384, 65536} {
		if at+80 > len(v.data) {
			continue
		}
		m := v.data[at+pageHeader:]
		h := fnv.New64a()
		_, _ = h.Write(m[:56])
		if binary.LittleEndian.Uint32(m) != boltMagic || binary.LittleEndian.Uint64(m[56:]) != h.Sum64() {
			continue
		}
		if id := binary.LittleEndian.Uint64(m[48:]); v.size == 0 || id > txid {
			txid, v.size = id, uint64(binary.LittleEndian.Uint32(m[8:]))
			v.root, v.free, v.high = binary.LittleEndian.Uint64(m[16:]), binary.LittleEndian.Uint64(m[32:]), binary.LittleEndian.Uint64(m[40:])
		}
	}
	if v.size < 512 || v.size > 1<<20 {
		return errMeta
	}
	if v.high > uint64(len(v.data))/v.size {
		return fmt.Errorf("the file has %d of %d pages", uint64(len(v.data))/v.size, v.high)
	}
	v.seen = make([]bool, v.high)
	return nil
}

// page gives a page with what overflows it, and marks it as seen.
func (v *verifier) page(id uint64) ([]byte, error) {
	if id < 2 || id >= v.high {
		return nil, fmt.Errorf("page %d is outside of the file", id)
	}
	p := v.data[id*v.size:]
	if got := binary.LittleEndian.Uint64(p); got != id {
		return nil, fmt.Errorf("page %d says it is page %d", id, got)
	}
	n := uint64(binary.LittleEndian.Uint32(p[12:])) + 1
	if n > v.high-id {
		return nil, fmt.Errorf("page %d is too long", id)
	}
	for i := id; i < id+n; i++ {
		if v.seen[i] {
			return nil, fmt.Errorf("page %d is in use twice", i)
		}
		v.seen[i] = true
	}
	return p[:n*v.size], nil
}

// pages walks a tree of pages whose keys lie in [from, to); nil is no bound.
func (v *verifier) pages(id uint64, from, to []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d is too deep", id)
	}
	p, err := v.page(id)
	if err != nil {
		return err
	}
	return v.elements(p, id, from, to, depth)
}

func (v *verifier) elements(p []byte, id uint64, from, to []byte, depth int) error {
	flags, count := binary.LittleEndian.Uint16(p[8:]), int(binary.LittleEndian.Uint16(p[10:]))
	if flags != flagBranch && flags != flagLeaf || pageHeader+count*elementSize > len(p) || flags == flagBranch && count == 0 {
		return fmt.Errorf("page %d is garbage (flags %x, %d elements)", id, flags, count)
	}
	var last []byte
	for i := range count {
		at := pageHeader + i*elementSize
		e := p[at : at+elementSize]
		var pos, ksize, vsize uint64
		if flags == flagBranch {
			pos, ksize = uint64(binary.LittleEndian.Uint32(e)), uint64(binary.LittleEndian.Uint32(e[4:]))
		} else {
			pos, ksize = uint64(binary.LittleEndian.Uint32(e[4:])), uint64(binary.LittleEndian.Uint32(e[8:]))
			vsize = uint64(binary.LittleEndian.Uint32(e[12:]))
		}
		start := uint64(at) + pos
		if start+ksize+vsize > uint64(len(p)) || pos < elementSize {
			return fmt.Errorf("page %d: element %d is outside of it", id, i)
		}
		k := p[start : start+ksize]
		if i > 0 && bytes.Compare(last, k) >= 0 || i == 0 && from != nil && bytes.Compare(k, from) < 0 || to != nil && bytes.Compare(k, to) >= 0 {
			return fmt.Errorf("page %d: element %d is out of order", id, i)
		}
		last = k
		switch {
		case flags == flagBranch:
			end := to
			if i+1 < count {
				end = branchKey(p, i+1)
			}
			if err := v.pages(binary.LittleEndian.Uint64(e[8:]), k, end, depth+1); err != nil {
				return err
			}
		case binary.LittleEndian.Uint32(e)&leafBucket != 0:
			if err := v.bucket(p[start+ksize:start+ksize+vsize], id, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// freelist looks at the list of free pages, if it is stored: none of them may be in use.
func (v *verifier) freelist() error {
	if v.free == noFreelist {
		return nil
	}
	p, err := v.page(v.free)
	if err != nil {
		return err
	}
	count, ids := uint64(binary.LittleEndian.Uint16(p[10:])), p[pageHeader:]
	if count == 0xFFFF {
		count, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if binary.LittleEndian.Uint16(p[8:]) != flagFree || count > uint64(len(ids))/8 {
		return fmt.Errorf("page %d is no free list", v.free)
	}
	for i := range count {
		id := binary.LittleEndian.Uint64(ids[8*i:])
		if id < 2 || id >= v.high || v.seen[id] {
			return fmt.Errorf("free page %d is in use", id)
		}
		v.seen[id] = true
	}
	return nil
}

// branchKey gives a key for use as a bound, nil when it is not to be had; its own turn will tell.
func branchKey(p []byte, i int) []byte {
	at := pageHeader + i*elementSize
	start := uint64(at) + uint64(binary.LittleEndian.Uint32(p[at:]))
	end := start + uint64(binary.LittleEndian.Uint32(p[at+4:]))
	if end > uint64(len(p)) {
		return nil
	}
	return p[start:end]
}

func (v *verifier) bucket(b []byte, id uint64, depth int) error {
	if len(b) < bucketSize {
		return fmt.Errorf("page %d: a bucket of %d bytes", id, len(b))
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		return v.pages(root, nil, nil, depth+1)
	}
	if len(b) < bucketSize+pageHeader {
		return fmt.Errorf("page %d: an inline bucket of %d bytes", id, len(b))
	}
	return v.elements(b[bucketSize:], id, nil, nil, depth+1)
}
