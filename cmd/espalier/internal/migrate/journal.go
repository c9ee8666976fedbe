package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// journalFolder is the folder of a module with a journal. The go command ignores it, for its dot.
const journalFolder = ".espalier-migrate"

// journal is what a run has decided to write. It is complete before the first file changes.
type journal struct {
	folder string
	// Files have paths relative to the module.
	Files []journalFile `json:"files"`
	// Plan is the report, which a run that is interrupted leaves to the one that finishes it.
	Plan *Plan `json:"plan"`
	// SkipTidy is true if "go mod tidy" does not follow.
	SkipTidy bool `json:"skipTidy,omitempty"`
}

type journalFile struct {
	Path string `json:"path"`
	// Staged is the name of the file with the new content, in the folder of the journal.
	Staged string `json:"staged"`
	// Before and After are digests of the content.
	Before string `json:"before"`
	After  string `json:"after"`
}

func hasJournal(root string) bool { return exists(filepath.Join(root, journalFolder, "journal.json")) }

// newJournal records the files of a plan.
func newJournal(p *Plan) error {
	j := &journal{folder: filepath.Join(p.Root, journalFolder), Plan: p, SkipTidy: p.skipTidy}
	// Without journal.json it is of a run that has changed nothing.
	if err := os.RemoveAll(j.folder); err != nil {
		return err
	}
	if err := os.Mkdir(j.folder, 0o755); err != nil {
		return err
	}
	for i, file := range p.Files {
		info, err := os.Stat(filepath.Join(p.Root, file.Path))
		if err != nil {
			return err
		}
		staged := strconv.Itoa(i)
		if err := writeSynced(filepath.Join(j.folder, staged), file.after, info.Mode().Perm()); err != nil {
			return err
		}
		j.Files = append(j.Files, journalFile{file.Path, staged, digest(file.before), digest(file.after)})
	}
	return j.save()
}

// save writes the index of the journal as a whole.
func (j *journal) save() error {
	content, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	unnamed := filepath.Join(j.folder, "unfinished")
	if err := os.Remove(unnamed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(unnamed, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unnamed, filepath.Join(j.folder, "journal.json"))
}

func readJournal(root string) (*journal, error) {
	j := &journal{folder: filepath.Join(root, journalFolder)}
	content, err := os.ReadFile(filepath.Join(j.folder, "journal.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, j); err != nil {
		return nil, fmt.Errorf("%s/journal.json: %w", j.folder, err)
	}
	if j.Plan == nil {
		return nil, fmt.Errorf("%s/journal.json has no plan: remove the folder, and run the command again", j.folder)
	}
	j.Plan.Root = root
	return j, nil
}

// finish puts each file in its place by rename, unless it is there.
func (j *journal) finish(rename func(from, to string) error) error {
	root := filepath.Dir(j.folder)
	for _, file := range j.Files {
		if !filepath.IsLocal(file.Path) || !filepath.IsLocal(file.Staged) {
			return fmt.Errorf("%s/journal.json: %s is outside of the module", j.folder, file.Path)
		}
		path := filepath.Join(root, file.Path)
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch digest(now) {
		case file.After:
			continue
		case file.Before:
		default:
			return fmt.Errorf("%s has changed since the migration began: restore it, or remove %s to give up what "+
				"is not written yet", path, j.folder)
		}
		// A link is followed, and not replaced.
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		if err := rename(filepath.Join(j.folder, file.Staged), target); err != nil {
			return fmt.Errorf("%s is not written, run the command again to go on: %w", path, err)
		}
	}
	// From here on the files are the user's, who may have to mend them for what follows.
	j.Files = nil
	return j.save()
}

// remove removes the journal; its index goes first, so that what is left says nothing.
func (j *journal) remove() error {
	err := os.Remove(filepath.Join(j.folder, "journal.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(j.folder)
}

func writeSynced(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	// The umask takes bits away from what is made.
	return errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
