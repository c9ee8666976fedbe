package plugins

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/process"
	"github.com/espalier-dev/espalier/plugins/internal/program"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// origin is where a plugin comes from.
type origin struct {
	// key identifies it in the registry, and name is what people know it by.
	key, name string
	// file is the name of a program; empty for others.
	file string
	// identity says which plugin it is; empty if that is not known, and so each connection may be to another one.
	identity string
	// bound is what it may provide. That of a plugin in the process is not bounded.
	bound answer.Bound
	// connect starts the plugin, or connects to it.
	connect func(ctx context.Context) (*process.Plugin, error)
	// lastDelay is how long to wait at most until it is tried again.
	lastDelay time.Duration
	// local is a plugin in the process. It takes the place of connect.
	local *Plugin
	// close is called when the origin is not used any more. It may be nil.
	close func() error
}

// programKey returns the key of a program. One that may provide something else is another one.
func programKey(name string, entry program.Entry) string {
	return "program:" + name + "@" + entry.Digest.String() + " " + entry.Provides
}

// program returns the origin of a program of the list. It returns an error if that must not run.
func (h *Host) program(name string, entry program.Entry) (origin, error) {
	bound, err := answer.ParseBound(entry.Provides)
	if err != nil {
		return origin{}, err
	}
	p, err := program.Load(h.Folder, name, entry.Digest)
	if err != nil {
		return origin{}, err
	}
	return origin{
		key: programKey(name, entry), name: name, identity: p.Digest.String(),
		bound: bound, file: name, lastDelay: lastDelay,
		connect: func(ctx context.Context) (*process.Plugin, error) {
			return process.Start(ctx, process.Config{
				Program: p, Environment: h.Environment[p.Name], Limits: h.processLimits(),
				Log: h.log.WithValues("plugin", p.Name),
			})
		},
		close: p.Close,
	}, nil
}

// sidecar returns the origin of a plugin that somebody else runs. Without an entry nothing connects to it.
func (h *Host) sidecar(socket, entry string) origin {
	bound, err := answer.ParseBound(entry)
	return origin{
		key: "sidecar:" + socket, name: socket, bound: bound, lastDelay: lastDelayOfSidecar,
		connect: func(context.Context) (*process.Plugin, error) {
			if err != nil {
				return nil, err
			}
			return process.Attach(socket, h.processLimits())
		},
	}
}

// inProcess returns the origin of a plugin that is part of the operator.
func inProcess(plugin Plugin) origin {
	key := "in process:" + plugin.Category
	for _, t := range plugin.Types {
		key += "/" + t.Name
	}
	return origin{key: key, name: plugin.Category + " in the operator", identity: key, local: &plugin}
}

func (h *Host) processLimits() process.Limits {
	return process.Limits{Start: h.Limits.Start, Answer: h.Limits.AnswerBytes, Memory: h.Limits.Memory}
}

const (
	// firstDelay is when a plugin is started again. It doubles up to lastDelay, unless the plugin has run for a while.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
	aWhile     = time.Minute
	// lastDelayOfSidecar is shorter: to connect costs little, and somebody else starts it.
	lastDelayOfSidecar = 2 * time.Second
	// checkEvery is how often a plugin is asked whether it serves, checkTime is how long it may take to say so, and
	// failedChecks is how many times in a row it may fail to.
	checkEvery   = 5 * time.Second
	checkTime    = 5 * time.Second
	failedChecks = 3
	// failedCalls is how many calls in a row may fail by their deadline, before a plugin is started again.
	failedCalls = 3
)

// running keeps one plugin running.
type running struct {
	origin
	host *Host
	// connections counts how many times it was connected.
	connections int
	// tried is closed when the first attempt to start it has succeeded or failed.
	tried  chan struct{}
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// run keeps a plugin running until the context ends.
func (h *Host) run(ctx context.Context, from origin) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{origin: from, host: h, tried: make(chan struct{}), cancel: cancel}
	h.registry.expect(from.key, from.bound)
	r.ended.Go(func() {
		defer func() {
			h.registry.drop(from.key)
			if from.close != nil {
				_ = from.close() // nothing can be done about it
			}
		}()
		if from.local != nil {
			r.serveLocal(ctx)
			return
		}
		r.keepRunning(ctx)
	})
	return r
}

// end ends the plugin, and waits for that.
func (r *running) end() {
	r.cancel()
	r.ended.Wait()
}

// noteLocal notes the plugins in the process that serve at once: those without definitions. If there are no others,
// nothing has to be started to know all plugins.
func (h *Host) noteLocal() {
	all := h.Folder == "" && len(h.Sidecars) == 0 && len(h.InProcess) > 0
	for _, plugin := range h.InProcess {
		if len(plugin.Definitions) > 0 || plugin.Validate() != nil {
			all = false
			continue
		}
		r := &running{origin: inProcess(plugin), host: h, tried: make(chan struct{})}
		r.note(provider{provided: plugin.provided(), caller: server{plugin: plugin}}, nil)
	}
	if all {
		h.registry.run()
		h.registry.settle()
	}
}

func (r *running) serveLocal(ctx context.Context) {
	provided := r.local.provided()
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		err := r.host.Install.install(ctx, provided.Definitions)
		r.note(provider{provided: provided, caller: server{plugin: *r.local}}, err)
		if err == nil {
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// note notes in the registry how the plugin is.
func (r *running) note(p provider, err error) {
	p.name, p.file, p.identity, p.connections, p.bound = r.name, r.file, r.identity, r.connections, r.bound
	if r.identity == "" {
		p.identity = r.key + "#" + strconv.Itoa(r.connections)
	}
	if err != nil {
		p.caller, p.why = nil, message.Stable(err.Error())
		p.provided = answer.Provided{}
	}
	r.host.registry.set(r.key, p)
	select {
	case <-r.tried:
	default:
		close(r.tried)
	}
}

func (r *running) keepRunning(ctx context.Context) {
	log := r.host.log.WithValues("plugin", r.name)
	last, connections := "", 0
	for delay := firstDelay; ; delay = min(2*delay, r.lastDelay) {
		start := time.Now()
		err := r.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		// A plugin that has not run meanwhile, and for the same reason, is not worth another line.
		if text := message.Stable(err.Error()); text != last || r.connections != connections {
			log.Info("the plugin does not run", "reason", text)
			last, connections = text, r.connections
		}
		r.note(provider{}, err)
		if time.Since(start) > aWhile {
			delay = firstDelay
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// runOnce starts the plugin, and returns why it does not run any more.
func (r *running) runOnce(ctx context.Context) error {
	plugin, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = plugin.Stop() }() // what is left of it cannot be ended
	claimed, err := r.describe(ctx, plugin)
	if err != nil {
		return err
	}
	provided, beyond := r.bound.Of(claimed)
	if err := r.host.Install.install(ctx, provided.Definitions); err != nil {
		return err
	}
	r.connections++
	remote := &remote{
		client: protocol.NewPluginClient(plugin), limits: r.host.Limits,
		slots: make(chan struct{}, r.host.Limits.Calls), broken: make(chan struct{}),
	}
	r.host.log.Info("the plugin runs", "plugin", r.name, "category", provided.Category)
	if len(beyond) > 0 {
		r.host.log.Info("the plugin claims what it must not provide: that is ignored", "plugin", r.name,
			"claims", message.List(beyond, maxNamed), "bound to", strings.Join(r.bound, ","))
	}
	r.note(provider{provided: provided, beyond: beyond, caller: remote}, nil)
	return r.awaitFault(ctx, plugin, remote)
}

// describe asks a plugin what it provides, as it claims.
func (r *running) describe(ctx context.Context, plugin *process.Plugin) (answer.Provided, error) {
	ctx, cancel := context.WithTimeout(ctx, r.host.Limits.Start)
	defer cancel()
	if err := plugin.Check(ctx); err != nil {
		return answer.Provided{}, explain(err, r.host.Limits)
	}
	described, err := protocol.NewPluginClient(plugin).Describe(ctx, &protocol.DescribeRequest{})
	if err != nil {
		return answer.Provided{}, explain(err, r.host.Limits)
	}
	return answer.ProvidedIn(described)
}

// awaitFault returns what is wrong with a plugin once something is.
func (r *running) awaitFault(ctx context.Context, plugin *process.Plugin, remote *remote) error {
	every := time.NewTicker(checkEvery)
	defer every.Stop()
	for failed := 0; failed < failedChecks; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-plugin.Done():
			return plugin.End()
		case <-remote.broken:
			return fmt.Errorf("%d calls in a row were not answered within %s", failedCalls, r.host.Limits.Call)
		case <-every.C:
		}
		check, cancel := context.WithTimeout(ctx, checkTime)
		err := plugin.Check(check)
		cancel()
		if failed++; err == nil {
			failed = 0
		}
	}
	return errors.New("it does not say any more that it serves")
}

// remote asks a plugin in another process.
type remote struct {
	client protocol.PluginClient
	limits Limits
	slots  chan struct{}
	// late counts the calls in a row that have failed by their deadline. When they are too many, broken is closed.
	late   atomic.Int32
	broken chan struct{}
	once   sync.Once
}

// Dependents asks the plugin. It waits while too many calls are under way.
func (r *remote) Dependents(
	ctx context.Context, request *protocol.DependentsRequest,
) (*protocol.DependentsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Call)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%d calls are under way, and none has ended within %s", r.limits.Calls, r.limits.Call)
	}
	defer func() { <-r.slots }()
	response, err := r.client.Dependents(ctx, request)
	if status.Code(err) != codes.DeadlineExceeded {
		r.late.Store(0)
	} else if r.late.Add(1) >= failedCalls {
		r.once.Do(func() { close(r.broken) })
	}
	if err != nil {
		return nil, explain(err, r.limits)
	}
	return response, nil
}

// explain returns an error for the error of a call. Its text is the same each time that the same happens.
func explain(err error, limits Limits) error {
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return fmt.Errorf("it has not answered within %s", limits.Call)
	case codes.ResourceExhausted:
		return fmt.Errorf("its answer is larger than %d bytes", limits.AnswerBytes)
	case codes.Unavailable:
		return errors.New("it cannot be reached")
	case codes.Unimplemented:
		return errors.New("it does not serve the contract of plugins in version 1")
	}
	return errors.New(message.Stable(status.Convert(err).Message()))
}
