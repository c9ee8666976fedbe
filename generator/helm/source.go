package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/espalier-dev/espalier/internal/document"
)

var (
	errNoPath    = errors.New("there is neither a folder nor a path")
	errLink      = errors.New("it is a symbolic link")
	errIrregular = errors.New("it is neither a file nor a folder")
	errLoop      = errors.New("it is a symbolic link to a folder that contains it")
	errSize      = fmt.Errorf("the chart has more than %d bytes", archive.MaxDecompressedChartSize)
)

// readFiles returns the files of the chart at name, by their paths in the chart. The arguments are those of
// [NewGenerator]. The files have no time, so that equal charts are equal.
func readFiles(folder fs.FS, name string) ([]*archive.BufferedFile, error) {
	if folder == nil {
		return readFromDisk(name)
	}
	name = path.Clean("./" + name)
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	s := source{folder: folder}
	for i, char := range name {
		if char == '/' {
			if _, err := s.stat(name[:i]); err != nil {
				return nil, err
			}
		}
	}
	info, err := s.stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := folder.Open(name)
		if err != nil {
			return nil, err
		}
		return readArchive(file)
	}
	if s.folder, err = fs.Sub(folder, name); err != nil {
		return nil, err
	}
	return s.readAll()
}

func readFromDisk(name string) ([]*archive.BufferedFile, error) {
	if name == "" {
		return nil, errNoPath
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		return readArchive(file)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	// A root follows only links that stay in it.
	s := source{folder: root.FS(), follow: true}
	return s.readAll()
}

func readArchive(file fs.File) ([]*archive.BufferedFile, error) {
	defer func() { _ = file.Close() }()
	files, err := archive.LoadArchiveFiles(file)
	if err != nil {
		return nil, fmt.Errorf("unable to unpack: %w", err)
	}
	budget := archive.MaxDecompressedChartSize
	for _, f := range files {
		budget -= cost(f)
	}
	return files, checkArchives(files, &budget)
}

// source reads the files of a folder that has a chart.
type source struct {
	folder fs.FS
	// follow is true if folder itself refuses symbolic links that leave it. Otherwise all are refused.
	follow bool
	rules  *ignore.Rules
	budget int64
	files  []*archive.BufferedFile
}

func (s *source) readAll() ([]*archive.BufferedFile, error) {
	s.budget = archive.MaxDecompressedChartSize
	if err := s.readRules(); err != nil {
		return nil, err
	}
	if err := s.readFolder(".", nil); err != nil {
		return nil, err
	}
	return s.files, checkArchives(s.files, &s.budget)
}

func (s *source) readRules() error {
	s.rules = ignore.Empty()
	_, err := s.stat(ignore.HelmIgnore)
	if err == nil {
		var content []byte
		if content, err = s.read(ignore.HelmIgnore); err == nil {
			s.rules, err = ignore.Parse(bytes.NewReader(content))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
	}
	s.rules.AddDefaults()
	return nil
}

// stat follows a symbolic link, or refuses it.
func (s *source) stat(name string) (fs.FileInfo, error) {
	info, err := fs.Lstat(s.folder, name)
	switch {
	case err != nil || info.Mode()&fs.ModeSymlink == 0:
		return info, err
	case !s.follow:
		return nil, &fs.PathError{Op: "read", Path: name, Err: errLink}
	}
	return fs.Stat(s.folder, name)
}

// readFolder reads what is not ignored, at any depth. above are the folders that contain it.
func (s *source) readFolder(name string, above []fs.FileInfo) error {
	self, err := fs.Stat(s.folder, name)
	if err != nil {
		return err
	}
	for _, info := range above {
		if os.SameFile(info, self) {
			return &fs.PathError{Op: "read", Path: name, Err: errLoop}
		}
	}
	entries, err := fs.ReadDir(s.folder, name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := s.readEntry(path.Join(name, entry.Name()), entry, append(above, self)); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) readEntry(name string, entry fs.DirEntry, above []fs.FileInfo) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if s.rules.Ignore(name, info) {
		return nil
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		if !s.follow {
			return &fs.PathError{Op: "read", Path: name, Err: errLink}
		}
		if info, err = fs.Stat(s.folder, name); err != nil {
			return fmt.Errorf("symbolic link %s: %w", name, err)
		}
		if s.rules.Ignore(name, info) {
			return nil
		}
	}
	switch {
	case info.IsDir():
		s.budget -= int64(len(name))
		return s.readFolder(name, above)
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "read", Path: name, Err: errIrregular}
	}
	content, err := s.read(name)
	if err != nil {
		return err
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	file := &archive.BufferedFile{Name: name, Data: content}
	s.budget -= cost(file)
	s.files = append(s.files, file)
	return nil
}

// read reads a file that fits in the budget.
func (s *source) read(name string) ([]byte, error) {
	file, err := s.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, max(s.budget, 0)+1))
	if err == nil && int64(len(content)) > s.budget {
		err = errSize
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// cost is what a file takes from the budget. Its name counts, because there may be many empty files.
func cost(file *archive.BufferedFile) int64 {
	return int64(len(file.Name) + len(file.Data))
}

var packedChart = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^_./][^/]*\.tgz$`)

// parsedByHelm has the files that the SDK parses, with what bounds them.
var parsedByHelm = map[string]func([]byte) error{
	"Chart.yaml": document.Check, "Chart.lock": document.Check, "values.yaml": document.Check,
	"requirements.yaml": document.Check, "requirements.lock": document.Check, schemaFile: document.CheckJSON,
}

// checkArchives bounds what the SDK parses, and takes what the packed sub-charts contain, at any depth, from the
// budget. The SDK bounds each alone.
func checkArchives(files []*archive.BufferedFile, budget *int64) error {
	for _, file := range files {
		if check := parsedByHelm[path.Base(file.Name)]; check != nil {
			if err := check(file.Data); err != nil {
				return fmt.Errorf("%s: %w", file.Name, invalidYAML(err))
			}
		}
		if !packedChart.MatchString(file.Name) {
			continue
		}
		inner, err := archive.LoadArchiveFiles(bytes.NewReader(file.Data))
		if err != nil {
			return fmt.Errorf("%s: unable to unpack: %w", file.Name, err)
		}
		for _, f := range inner {
			*budget -= cost(f)
		}
		if *budget < 0 {
			return fmt.Errorf("%s: %w", file.Name, errSize)
		}
		if err := checkArchives(inner, budget); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(file.Name, ".tgz"), err)
		}
	}
	return nil
}
