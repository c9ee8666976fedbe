package page

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// holderFor is how long the holder of a Lease counts.
	holderFor = 10 * time.Second
	// holderWithin is how long it may take to read it.
	holderWithin = 5 * time.Second
)

// LeaseHolder returns a function for Leader of [Options], which reads the holder of a Lease, at most every 10 seconds.
// The reader is APIReader of the manager, so that no Leases are watched. Who takes part in the election may read it.
func LeaseHolder(reader client.Reader, lease types.NamespacedName) func(ctx context.Context) (string, error) {
	var mu sync.Mutex
	var until time.Time
	var holder string
	var failed error
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Before(until) {
			return holder, failed
		}
		// A viewer who goes away does not end what others are told, too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderWithin)
		defer cancel()
		read := &coordinationv1.Lease{}
		holder, failed = "", nil
		if err := reader.Get(ctx, lease, read); client.IgnoreNotFound(err) != nil {
			failed = fmt.Errorf("unable to read the Lease %s: %w", lease, err)
		} else if read.Spec.HolderIdentity != nil {
			holder = *read.Spec.HolderIdentity
		}
		until = time.Now().Add(holderFor)
		return holder, failed
	}
}

// leadership says in words whether this replica leads, and names the one that does, if that is known, with a link to
// the same page there.
func (p *Page) leadership(a *answer) (leads string, leader link) {
	if p.options.Elected == nil {
		return "", link{}
	}
	select {
	case <-p.options.Elected:
		return "leads", link{}
	default:
	}
	const standby = "does not lead"
	if p.options.Leader == nil {
		return standby, link{}
	}
	identity, err := p.options.Leader(a.request.Context())
	switch {
	case err != nil:
		log.FromContext(a.request.Context()).Error(err, "unable to find out who leads")
		return standby + "; who does is not known", link{}
	case identity == "":
		return standby + "; nobody does", link{}
	}
	// The identities of controller-runtime have the name of the host, and a UUID.
	name, _, _ := strings.Cut(identity, "_")
	leader = link{Text: name}
	if p.options.Peer != nil {
		leader.URL = peerURL(p.options.Peer(identity), a.request.URL)
	}
	return standby, leader
}

// peerURL returns the URL of a page of another replica, whose pages are below base; empty if that is.
func peerURL(base string, at *url.URL) string {
	if base == "" {
		return ""
	}
	_, last := path.Split(at.Path)
	query := at.Query()
	query.Del("fragment")
	there := strings.TrimSuffix(base, "/") + "/" + last
	if len(query) > 0 {
		there += "?" + query.Encode()
	}
	return there
}
