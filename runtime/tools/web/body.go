package web

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

var (
	errTooLarge = fmt.Errorf("the page is larger than %d MB, or %d MB unpacked", MaxBody>>20, MaxDecoded>>20)
	errEncoding = errors.New("the page is packed in a way that cannot be read")
)

// decode reads a body of at most MaxBody bytes and unpacks it to at most MaxDecoded.
func decode(body io.Reader, encodings []string) ([]byte, error) {
	wire := &capped{r: body, left: MaxBody}
	var enc []string
	for e := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		if e = strings.ToLower(strings.TrimSpace(e)); e != "" && e != "identity" {
			enc = append(enc, e)
		}
	}
	var in io.Reader = wire
	switch {
	case len(enc) == 0:
	case len(enc) > 1: // packed twice: a bomb, or a server out of its mind
		return nil, errEncoding
	case enc[0] == "gzip" || enc[0] == "x-gzip":
		z, err := gzip.NewReader(wire)
		if err != nil {
			return nil, readFault(err)
		}
		in = z
	case enc[0] == "deflate":
		br := bufio.NewReader(wire)
		head, err := br.Peek(2)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, readFault(err)
		}
		// By the standard it is zlib; some servers send the bare stream.
		if len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			if in, err = zlib.NewReader(br); err != nil {
				return nil, readFault(err)
			}
		} else {
			in = flate.NewReader(br)
		}
	default:
		return nil, errEncoding
	}
	out, err := io.ReadAll(&capped{r: in, left: MaxDecoded})
	if err != nil {
		return nil, readFault(err)
	}
	return out, nil
}

// readFault tells damaged packing from a connection that failed.
func readFault(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrHeader),
		errors.Is(err, zlib.ErrChecksum), errors.Is(err, zlib.ErrDictionary), errors.As(err, &corrupt):
		return errEncoding
	}
	return err
}

// capped fails with errTooLarge after left bytes; a stream of exactly that length is fine.
type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(b []byte) (int, error) {
	if c.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(b)) > c.left+1 {
		b = b[:c.left+1]
	}
	n, err := c.r.Read(b)
	if c.left -= int64(n); c.left < 0 {
		return n + int(c.left), errTooLarge
	}
	return n, err
}
