package lines

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Unpacked says of an error in reading what a gzip reader unpacks that the file is
// damaged, if that is why, and returns any other error, or nil, as it is.
func Unpacked(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt) {
		return fmt.Errorf("the gzip file is cut short or damaged: %w", err)
	}
	return err
}
