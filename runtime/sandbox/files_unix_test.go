//go:build unix

package sandbox

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestPipeDoesNotBlock(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Outputs+"/x", "x")
	if err := syscall.Mkfifo(filepath.Join(host, "outputs/pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	_, err := f.Open(Outputs + "/pipe")
	checkErr(t, err, ErrNotRegular, host)
	_, err = f.OpenIn(Outputs, Outputs+"/pipe")
	checkErr(t, err, ErrNotRegular, host)
	checkErr(t, f.Append(Outputs+"/pipe", []byte("x")), ErrNotRegular, host)
	checkErr(t, f.WriteFile(Outputs+"/pipe", []byte("x")), ErrNotRegular, host)
	_, err = f.ReadDir(Outputs + "/pipe")
	checkErr(t, err, nil, host)
}
