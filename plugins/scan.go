package plugins

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/program"
)

// sources are the plugins that a host keeps running. Only the goroutine of [Host.Start] uses it.
type sources struct {
	host  *Host
	fixed []*running
	// programs are those that run, by the names of their files.
	programs map[string]*running
	// refused says why files are not run, by their names.
	refused map[string]string
	// tried are the files that were last compared with the list, by their names.
	tried map[string]attempt
	// unread is why the list could not be read last.
	unread string
}

// attempt is a file that was compared with an entry of the list.
type attempt struct {
	entry program.Entry
	info  os.FileInfo
}

// same reports whether the file is the one that was compared with the entry, as far as can be seen without reading it.
func (a attempt) same(entry program.Entry, info os.FileInfo) bool {
	return a.info != nil && a.entry == entry && os.SameFile(a.info, info) &&
		a.info.Size() == info.Size() && a.info.ModTime().Equal(info.ModTime())
}

// add keeps a plugin running that is there for as long as the host.
func (s *sources) add(ctx context.Context, from origin) {
	s.fixed = append(s.fixed, s.host.run(ctx, from))
}

// end ends all plugins.
func (s *sources) end() {
	all := s.fixed
	for _, r := range s.programs {
		all = append(all, r)
	}
	for _, r := range all {
		r.cancel()
	}
	for _, r := range all {
		r.ended.Wait()
	}
}

// scan has those programs run that are in the folder and in the list.
func (s *sources) scan(ctx context.Context) {
	listed, err := s.host.listed()
	if err != nil {
		// What runs was listed. Without a list nobody can tell whether it still is.
		if text := err.Error(); text != s.unread {
			s.host.log.Error(err, "the plugins stay as they are")
			s.unread = text
		}
		return
	}
	s.unread = ""
	for name, entry := range listed {
		s.keep(ctx, name, entry)
	}
	for name, r := range s.programs {
		if _, is := listed[name]; !is {
			s.host.log.Info("the plugin is not in the list any more", "plugin", name)
			r.end()
			delete(s.programs, name)
		}
	}
	unlisted := s.unlisted(listed)
	for name := range s.refused {
		if _, is := listed[name]; !is && !unlisted[name] {
			s.accept(name)
		}
	}
}

// keep has a program of the list run.
func (s *sources) keep(ctx context.Context, name string, entry program.Entry) {
	before := s.programs[name]
	if before != nil && before.key == programKey(name, entry) {
		// The copy in memory is what runs, whatever is in the folder now, unless it is to be there no more.
		if _, err := os.Lstat(filepath.Join(s.host.Folder, name)); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		s.host.log.Info("the plugin is not in the folder any more", "plugin", name)
		before.end()
		delete(s.programs, name)
		return
	}
	info, err := os.Stat(filepath.Join(s.host.Folder, name))
	if err == nil && s.refused[name] != "" && s.tried[name].same(entry, info) {
		return // nothing has changed since it was refused
	}
	s.tried[name] = attempt{entry, info}
	from, err := s.host.program(name, entry)
	if before != nil && err != nil {
		s.host.log.Info("the plugin is not the one of the list any more", "plugin", name)
		before.end()
		delete(s.programs, name)
	}
	if err != nil {
		s.refuse(name, err)
		return
	}
	s.accept(name)
	after := s.host.run(ctx, from)
	s.programs[name] = after
	if before == nil {
		return
	}
	// The one before answers until the new one does, or has failed.
	select {
	case <-after.tried:
	case <-ctx.Done():
	}
	before.end()
}

// refusedKey is the key of a file that is not run.
func refusedKey(name string) string { return "refused:" + name }

// refuse notes that a file is not run.
func (s *sources) refuse(name string, err error) {
	text := message.Stable(err.Error())
	if s.refused[name] == text {
		return
	}
	s.refused[name] = text
	s.host.log.Info("the plugin is not run", "plugin", name, "reason", text)
	s.host.registry.set(refusedKey(name), provider{name: name, why: text})
}

// accept notes that a file is not refused any more.
func (s *sources) accept(name string) {
	if _, was := s.refused[name]; was {
		delete(s.refused, name)
		s.host.registry.drop(refusedKey(name))
	}
}

// errNotListed is why a file is not run that the list does not have.
var errNotListed = errors.New("it is not in the list")

// unlisted notes which files of the folder are not run because they are not in the list, and returns their names.
func (s *sources) unlisted(listed program.List) map[string]bool {
	names := map[string]bool{}
	if s.host.Folder == "" {
		return names
	}
	files, err := os.ReadDir(s.host.Folder)
	if err != nil {
		names[s.host.Folder] = true
		s.refuse(s.host.Folder, err)
		return names
	}
	for _, file := range files {
		name := file.Name()
		// The list, or a copy of it, may be in the folder.
		other := file.IsDir() || strings.HasPrefix(name, ".") || name == filepath.Base(s.host.List)
		if _, is := listed[name]; is || other {
			continue
		}
		names[name] = true
		s.refuse(name, errNotListed)
	}
	return names
}
