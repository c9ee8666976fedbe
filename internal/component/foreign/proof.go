package foreign

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// proofInterval is how often it is tried to prove a fence.
const proofInterval = 20 * time.Millisecond

// verdict is what became of a creation for trial.
type verdict int

const (
	// accepted: nothing keeps an instance from being created, or only what is looked at after the fence.
	accepted verdict = iota
	// refusedByFence is the proof.
	refusedByFence
	// refusedBefore: the API server does not evaluate rules for such an instance.
	refusedBefore
	// refusedOtherwise: something else refuses, in front of the fence or behind it.
	refusedOtherwise
)

// unfitProbe is the obstacle when the rules are evaluated for none of the instances that could be thought of.
const unfitProbe = "Unfit"

// proof tries to create an instance, without ever doing it.
type proof struct {
	*Guard
	d *definition
	// probes are those still to be tried.
	probes []func(context.Context) (*unstructured.Unstructured, error)
	// probe is the one at hand.
	probe *unstructured.Unstructured
}

func (g *Guard) proof(d *definition) *proof {
	p := &proof{Guard: g, d: d}
	p.probes = []func(context.Context) (*unstructured.Unstructured, error){
		func(context.Context) (*unstructured.Unstructured, error) { return p.sample(), nil },
		p.likeness,
	}
	return p
}

// prove waits until the fence refuses an instance. What it returns tells when the margin is over, which begins when that instance was
// sent: the API server may have taken its time to refuse it.
func (g *Guard) prove(ctx context.Context, d *definition, margin time.Duration) (settled <-chan time.Time, err error) {
	p := g.proof(d)
	timeout := time.NewTimer(g.proofTimeout())
	defer timeout.Stop()
	ticker := time.NewTicker(proofInterval)
	defer ticker.Stop()
	for {
		settled := time.After(margin)
		proven, obstacle, err := p.attempt(ctx)
		if err != nil || proven {
			return settled, err
		}
		failure := unprovable(d, obstacle)
		if obstacle == unfitProbe {
			return nil, failure
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, failure
		case <-ticker.C:
		}
	}
}

// retriable tells whether it makes sense to fence, when an earlier fence could not be proven: only if the obstacle has changed.
// Otherwise a fence would be put on and taken off for ever, each time waking those who watch the definition.
func (g *Guard) retriable(ctx context.Context, d *definition) error {
	noted := d.unproven(g.annotation())
	if noted == "" || d.dormant() {
		return nil
	}
	_, obstacle, err := g.proof(d).attempt(ctx)
	if err != nil || obstacle != noted {
		return err
	}
	return unprovable(d, obstacle)
}

func unprovable(d *definition, obstacle string) error {
	reason := fmt.Sprintf("the fence of %s could not be proven", d.kind())
	switch obstacle {
	case "":
		reason += ": instances can be created in spite of it"
	case unfitProbe:
		reason += ": no instance is known that is valid otherwise"
	default:
		reason += ": an instance is refused for another reason: " + obstacle
	}
	return &unknownError{reason: reason, obstacle: obstacle}
}

// attempt tries to create an instance. Not proven, it returns what refused it, in stable words without a slash; none if nothing
// did.
func (p *proof) attempt(ctx context.Context) (proven bool, obstacle string, err error) {
	for {
		for p.probe == nil {
			if len(p.probes) == 0 {
				return false, unfitProbe, nil
			}
			if p.probe, err = p.probes[0](ctx); err != nil {
				return false, "", err
			}
			p.probes = p.probes[1:]
		}
		err := p.Client.Create(ctx, p.probe.DeepCopy(), client.DryRunAll, p.manager())
		if ctx.Err() != nil {
			return false, "", ctx.Err()
		}
		switch judge(err, p.message()) {
		case refusedByFence:
			return true, "", nil
		case accepted:
			return false, "", nil
		case refusedBefore:
			p.probe = nil
			continue
		}
		if obstacle := obstacleOf(err); obstacle != "" {
			return false, obstacle, nil
		}
		if _, answered := err.(apierrors.APIStatus); answered {
			return false, "", nil
		}
		return false, "", fmt.Errorf("could not try to create %s: %w", p.d.kind(), err)
	}
}

// judge reads the answer to a creation for trial. The message of the fence is looked for in the causes, since webhooks may
// write what they like in the text.
func judge(err error, message string) verdict {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return accepted
	}
	if !apierrors.IsInvalid(err) {
		return refusedOtherwise
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return refusedOtherwise
	}
	outcome := accepted
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Message, message) {
			return refusedByFence
		}
		switch cause.Type {
		// For these the API server does not go on to the rules.
		case metav1.CauseTypeFieldValueRequired, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeTooLong,
			metav1.CauseTypeTooMany, metav1.CauseTypeTypeInvalid:
			outcome = refusedBefore
		}
	}
	return outcome
}

var webhookName = regexp.MustCompile(`webhook "([A-Za-z0-9.-]{1,253})"`)

// obstacleOf puts a refusal in stable words: why, and by which webhook.
func obstacleOf(err error) string {
	words := refusal(err)
	if words == "" {
		return ""
	}
	if match := webhookName.FindStringSubmatch(err.Error()); match != nil {
		words += ", says the webhook " + match[1]
	}
	return words
}

// likeness is an instance like one that exists; nil if there is none to be had.
func (p *proof) likeness(ctx context.Context) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.empty().GroupVersionKind())
	list.SetKind(p.d.kind() + "List")
	if err := p.Client.List(ctx, list, client.Limit(1)); err != nil {
		if refusal(err) == "" {
			return nil, fmt.Errorf("could not read an instance of %s: %w", p.d.kind(), err)
		}
		return nil, nil
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	probe := p.empty()
	for field, value := range list.Items[0].Object {
		if _, taken := probe.Object[field]; !taken {
			probe.Object[field] = value
		}
	}
	return probe, nil
}
