package oci

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// maxName is the length of the path of a file.
const maxName = 512

var errUnpackedSize = errors.New("it is too large when unpacked")

// unpack returns the files of a .tar.gz, and their size. inFolder says that all are in one folder, which is left out.
func unpack(archive []byte, limit int64, inFolder bool) (fs.FS, int64, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, 0, err
	}
	// Headers and padding count too.
	bounded := &io.LimitedReader{R: unzipped, N: 2*limit + 1<<20}
	reader := tar.NewReader(bounded)
	// It is the file system in memory of the standard library. Nothing in it is compressed.
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	size, names := int64(0), map[string]bool{}
	for {
		header, err := reader.Next()
		if bounded.N <= 0 {
			return nil, 0, errUnpackedSize
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		name, err := nameOf(header, inFolder)
		if err != nil {
			return nil, 0, err
		}
		if name == "" {
			continue
		}
		if names[name] {
			return nil, 0, fmt.Errorf("the file %q is in it twice", name)
		}
		names[name] = true
		file, err := writer.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return nil, 0, err
		}
		written, err := io.Copy(file, io.LimitReader(reader, limit-size+1))
		if err != nil {
			return nil, 0, err
		}
		// A name counts, because there may be many empty files.
		if size += written + maxName; size > limit {
			return nil, 0, errUnpackedSize
		}
	}
	if err := writer.Close(); err != nil {
		return nil, 0, err
	}
	files, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	return files, size, err
}

// nameOf returns the path of a file, or nothing for a folder.
func nameOf(header *tar.Header, inFolder bool) (string, error) {
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return "", nil
	default:
		return "", fmt.Errorf("%q is neither a file nor a folder", header.Name)
	}
	name := strings.TrimPrefix(header.Name, "./")
	if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) || len(name) > maxName {
		return "", fmt.Errorf("%q is no path of a file in it", header.Name)
	}
	if !inFolder {
		return name, nil
	}
	_, name, ok := strings.Cut(name, "/")
	if !ok {
		return "", fmt.Errorf("the file %q is in no folder", path.Base(header.Name))
	}
	return name, nil
}
