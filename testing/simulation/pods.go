package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// PodBehavior is what becomes of a Pod on a node. All its containers behave alike. Times are in whole seconds, because
// so are those in a status. The zero value is a Pod that runs and is ready at once, and whose containers end with
// success at once if the Pod is not to be restarted always, as that of a Job.
type PodBehavior struct {
	// Unschedulable, if not empty, says why there is no node for the Pod.
	Unschedulable string
	// Waiting, if not empty, says why the containers do not start: "ImagePullBackOff", "CreateContainerConfigError".
	Waiting string
	// ReadyAfter is the time from the start of the containers until they are ready.
	ReadyAfter time.Duration
	// NeverReady says that the containers run and do not become ready.
	NeverReady bool
	// Exits says that the containers end, after RunFor and with ExitCode. Whether they start again follows from the
	// restart policy of the Pod; that of Deployments is to start them always, each time after a longer pause.
	Exits    bool
	RunFor   time.Duration
	ExitCode int32
	// StopAfter is how long the containers take to end when the Pod is deleted. It is at most the grace period.
	StopAfter time.Duration
}

// behavior returns what the controllers of the cluster ask.
func (o Options) behavior() func(pod *corev1.Pod) controllers.Behavior {
	if o.Pods == nil {
		return nil
	}
	return func(pod *corev1.Pod) controllers.Behavior { return controllers.Behavior(o.Pods(pod)) }
}
