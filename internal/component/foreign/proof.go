package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The guard tries to prove a fence at first so often, and then less and less often.
const (
	proofInterval    = 20 * time.Millisecond
	maxProofInterval = time.Second
)

// noProbe is the obstacle if the API server evaluates the rules for none of the probes.
const noProbe = "Unfit"

// prove waits until the fence refuses an instance at each API server, as far as that can be found out. It returns when
// the last of these instances was sent: the API server may take some time to refuse it.
func (g *Guard) prove(ctx context.Context, d *definition) (sent time.Time, err error) {
	all, err := g.findServers(ctx)
	if err != nil {
		return sent, err
	}
	p := &proof{Guard: g, d: d, through: all.client}
	met := tally{servers: all.count}
	deadline := time.Now().Add(cmp.Or(g.ProofTimeout, defaultProofTimeout))
	lost := 0
	for interval := proofInterval; ; interval = min(interval*3/2, maxProofInterval) {
		sent = time.Now()
		// The attempts do not get a context with the deadline: it would break off the last one.
		traced, server := traceServer(ctx)
		proven, obstacle, err := p.attempt(traced)
		switch {
		case err != nil:
			// A lost answer says nothing about the fence, and to begin again would take the fence off again.
			if lost++; lost == attempts || ctx.Err() != nil {
				return sent, err
			}
		case proven && met.refusedBy(*server):
			return sent, nil
		case proven:
			interval, lost = proofInterval, 0
			continue
		case obstacle == noProbe || time.Now().After(deadline):
			return sent, unproven(d, obstacle)
		default:
			met.inARow, lost = 0, 0
		}
		if err := pause(ctx, interval); err != nil {
			return sent, err
		}
	}
}

// checkObstacle returns an error if an earlier fence could not be proven, and the same obstacle still exists. Otherwise
// a fence would be added and removed again and again, and each time this would wake everything that watches the
// definition.
func (g *Guard) checkObstacle(ctx context.Context, d *definition) error {
	state, recorded := recordedState(d, g.annotation())
	if state != stateUnproven || d.dormant() {
		return nil
	}
	p := &proof{Guard: g, d: d, through: g.Client}
	if _, obstacle, err := p.attempt(ctx); err != nil || obstacle != recorded {
		return err
	}
	return unproven(d, recorded)
}

func unproven(d *definition, obstacle string) error {
	reason := fmt.Sprintf("the fence of %s could not be proven", d.kind())
	switch obstacle {
	case "":
		reason += ": instances can be created in spite of it"
	case noProbe:
		reason += ": no instance is known that is valid otherwise"
	default:
		reason += ": an instance is refused for another reason: " + obstacle
	}
	return &unknownError{reason: reason, obstacle: obstacle, fence: true}
}

// proof tries to create an instance of a type with dry runs.
type proof struct {
	*Guard
	d *definition
	// through is the client of the attempts.
	through client.Client
	// probe is the instance that is tried. First it is made from the schema, then from an instance that exists.
	probe       *unstructured.Unstructured
	probeIsCopy bool
}

// attempt tries to create an instance. If the fence does not refuse it, the obstacle is what refuses it, in a stable
// text without a slash. The obstacle is empty if nothing refuses the instance, or if the next answer may differ.
func (p *proof) attempt(ctx context.Context) (proven bool, obstacle string, err error) {
	if p.probe == nil {
		p.probe = p.probeWith(sampleObject(rootSchema(p.d.version()), 0))
	}
	for {
		err := p.through.Create(ctx, p.probe.DeepCopy(), client.DryRunAll, p.manager())
		if ctx.Err() != nil {
			return false, "", ctx.Err()
		}
		var status apierrors.APIStatus
		var causes []metav1.StatusCause
		answered := errors.As(err, &status)
		isInvalid := answered && apierrors.IsInvalid(err) && status.Status().Details != nil
		if isInvalid {
			causes = status.Status().Details.Causes
		}
		switch {
		case slices.ContainsFunc(causes, p.isFence):
			return true, "", nil
		case slices.ContainsFunc(causes, precedesRules):
			if err := p.copyInstance(ctx); err != nil || p.probe == nil {
				return false, noProbe, err
			}
			continue
		// What else is invalid is found along with the rules, or after them.
		case err == nil, apierrors.IsAlreadyExists(err), isInvalid:
			return false, "", nil
		}
		obstacle := obstacleOf(err)
		if obstacle == "" && !answered {
			return false, "", fmt.Errorf("could not try to create %s: %w", p.d.kind(), err)
		}
		return false, obstacle, nil
	}
}

// isFence reports whether the fence refuses the instance. The text of the whole error does not show it, since a webhook
// can write any text.
func (p *proof) isFence(cause metav1.StatusCause) bool {
	return strings.Contains(cause.Message, p.message())
}

// precedesRules reports whether the API server does not evaluate the rules for such an instance.
func precedesRules(cause metav1.StatusCause) bool {
	return slices.Contains([]metav1.CauseType{
		metav1.CauseTypeFieldValueRequired, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeTooLong,
		metav1.CauseTypeTooMany, metav1.CauseTypeTypeInvalid,
	}, cause.Type)
}

var webhookName = regexp.MustCompile(`webhook "([A-Za-z0-9.-]{1,253})"`)

// obstacleOf describes a refusal in a stable text: the reason, and the webhook.
func obstacleOf(err error) string {
	reason := stableReason(err)
	if match := webhookName.FindStringSubmatch(err.Error()); reason != "" && match != nil {
		reason += ", says the webhook " + match[1]
	}
	return reason
}

// copyInstance makes the probe from an instance that exists. There is no probe if none can be read, or if it was one
// already.
func (p *proof) copyInstance(ctx context.Context) error {
	if p.probeIsCopy {
		p.probe = nil
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.probe.GroupVersionKind())
	list.SetKind(p.d.kind() + "List")
	p.probe, p.probeIsCopy = nil, true
	err := p.Client.List(ctx, list, client.Limit(1))
	switch {
	case err != nil && stableReason(err) == "":
		return fmt.Errorf("could not read an instance of %s: %w", p.d.kind(), err)
	case err == nil && len(list.Items) > 0:
		p.probe = p.probeWith(list.Items[0].Object)
	}
	return nil
}
