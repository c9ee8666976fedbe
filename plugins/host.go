package plugins

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/plugins/internal/program"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Host runs plugins, and asks them for what resources need. It is a runnable of a manager:
//
//	host := &plugins.Host{Folder: "/plugins", List: "/etc/plugins/SHA256SUMS"}
//	err := mgr.Add(host)
//
// It starts the programs that are in Folder and in List, and connects to Sidecars. A plugin that ends, that does not
// start, or that does not answer is started again, after a second at first, and after five minutes at last. Folder and
// List are looked at again while it runs: a program with another digest in the list takes the place of the one before,
// one that is not there any more is ended, and a new one is started.
//
// A program and a sidecar have an entry that says what they may provide: capabilities such as database/postgres, with
// commas between them, and with * for each type of a category. What one claims beyond that is ignored, and one without
// an entry is not run. Where a capability is asked for that nobody provides, the condition names both, and so does the
// log.
//
// What a plugin cannot do to the others is in docs/plugins.md. A program has the user, the files and the network of the
// operator, also its token: it is trusted as the operator is. A sidecar has what its container has.
//
// The fields must not be changed once it runs. A host is started once.
type Host struct {
	// Folder has programs that are plugins. Those that List does not have are not run. Files that begin with a dot, and
	// one with the name of the list, do not count. Default: no program.
	Folder string
	// List is the file that says which programs may run, as sha256sum writes it: a digest and the name of a file in
	// each line, and then, behind a tab, its entry. A program is copied into memory once. The copy is what is compared,
	// and what runs. A new list has to be put into the place of the old one by renaming it: one that is half written is
	// read as it is. Required with Folder.
	List string
	// Environment has the environment variables of a program, as in "NAME=value", by the name of its file. A program
	// has no others but those of the handshake. Optional.
	Environment map[string][]string
	// Sidecars are plugins that somebody else runs, other containers of the pod: their entries, by the paths of their
	// sockets.
	Sidecars map[string]string
	// InProcess are plugins that are part of the operator. They are trusted, and not bounded in what they provide and
	// use. Those without definitions are there before the host is started: a test of a tree with such plugins alone
	// needs no manager.
	InProcess []Plugin
	// Prefer are plugins that count where another one provides what is asked for too, the first choice first. They also
	// count while they do not run, and before they have ever served, for what their entries allow. Each is the name of
	// a file, a socket, or a category of InProcess, as in "database in the operator". Default: where several plugins
	// provide what is asked for, none is asked.
	Prefer []string
	// Limits bound what a plugin may use. Default: see there.
	Limits Limits
	// Install has the definitions installed that plugins bring. Default: a plugin that brings one is not asked.
	Install *Installation
	// Advertise has the capabilities that there are shown by objects in a cluster. Optional.
	Advertise *Advertisement
	// Every is how often Folder and List are looked at. Default: 10 seconds.
	Every time.Duration

	initOnce sync.Once
	registry *registry
	log      logr.Logger
}

// Limits bound what one plugin may use.
type Limits struct {
	// Start is how long a program may take until it serves. Default: 30 seconds.
	Start time.Duration
	// Call is how long a call may take, with the time that it waits for others. Default: 10 seconds.
	Call time.Duration
	// Calls is how many calls are made at the same time. Default: 8.
	Calls int
	// AnswerBytes is how large an answer may be. Default: 4 MiB.
	AnswerBytes int
	// Dependents is how many an answer may have. Default: 100.
	Dependents int
	// Memory is how much memory a program may have, in bytes, on Linux. Negative: no bound. Default: 1 GiB.
	Memory int64
}

var (
	_ manager.Runnable               = (*Host)(nil)
	_ manager.LeaderElectionRunnable = (*Host)(nil)
)

func (h *Host) init() {
	h.initOnce.Do(func() {
		l := &h.Limits
		l.Start, l.Call = cmp.Or(l.Start, 30*time.Second), cmp.Or(l.Call, 10*time.Second)
		l.Calls, l.AnswerBytes = cmp.Or(l.Calls, 8), cmp.Or(l.AnswerBytes, 4<<20)
		l.Dependents, l.Memory = cmp.Or(l.Dependents, 100), cmp.Or(l.Memory, 1<<30)
		h.Every = cmp.Or(h.Every, 10*time.Second)
		h.registry = newRegistry(h.Prefer)
		h.noteLocal()
	})
}

// NeedLeaderElection returns true: only the replica that has the controllers run needs plugins.
func (h *Host) NeedLeaderElection() bool { return true }

// Start runs the plugins until the context ends, and then ends them. It returns an error if the host is not valid. What
// is wrong with a plugin is logged, and is said by the conditions of who asks for it.
func (h *Host) Start(ctx context.Context) error {
	h.init()
	if err := h.check(); err != nil {
		return err
	}
	h.registry.run()
	h.log = log.FromContext(ctx).WithName("plugins")
	s := &sources{
		host: h, programs: map[string]*running{}, refused: map[string]string{}, tried: map[string]attempt{},
	}
	defer s.end()
	if h.Advertise != nil {
		var advertising sync.WaitGroup
		defer advertising.Wait()
		advertising.Go(func() { h.Advertise.run(ctx, h) })
	}
	for socket, entry := range h.Sidecars {
		s.add(ctx, h.sidecar(socket, entry))
	}
	for _, plugin := range h.InProcess {
		s.add(ctx, inProcess(plugin))
	}
	every := time.NewTicker(h.Every)
	defer every.Stop()
	for {
		s.scan(ctx)
		if h.registry.settle() {
			h.log.V(1).Info("all plugins were tried")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (h *Host) check() error {
	if (h.Folder == "") != (h.List == "") {
		return errors.New("a Host must have both Folder and List, or none of them")
	}
	for _, plugin := range h.InProcess {
		if err := plugin.Validate(); err != nil {
			return err
		}
	}
	if h.Install != nil {
		if err := h.Install.check(); err != nil {
			return err
		}
	}
	if h.Advertise != nil {
		return h.Advertise.check()
	}
	return nil
}

// listed returns the programs of the list. None are listed without a folder.
func (h *Host) listed() (program.List, error) {
	if h.Folder == "" {
		return nil, nil
	}
	return program.ReadList(h.List)
}
