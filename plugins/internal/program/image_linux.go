package program

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// image is a file in memory, which has no name and, once it is sealed, cannot be changed by anybody.
type image struct {
	file *os.File
}

func newImage(name string) (*image, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		// The system is older than that flag, and has each such file run.
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("unable to copy it into memory: %w", err)
	}
	return &image{file: os.NewFile(uintptr(fd), name)}, nil
}

// seal has the system refuse each change.
func (i *image) seal() error {
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(i.file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("unable to protect the copy in memory: %w", err)
	}
	return nil
}

// Command returns the path to start the copy by, and the file that the process has to get as its first one after the
// standard ones.
func (i *image) Command() (path string, file *os.File) { return "/proc/self/fd/3", i.file }

// Close lets go of the copy. A process that was started from it keeps it.
func (i *image) Close() error { return i.file.Close() }
