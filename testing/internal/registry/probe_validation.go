package registry

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// handler is what a probe or a hook of a container does. At most one field is set.
type handler struct {
	exec *corev1.ExecAction
	http *corev1.HTTPGetAction
	tcp  *corev1.TCPSocketAction
	grpc *corev1.GRPCAction
	// sleep is for hooks alone.
	sleep *corev1.SleepAction
}

// validateProbe requires one handler. A probe whose failure ends the container must succeed at once.
func (p podRules) validateProbe(probe *corev1.Probe, ends bool, at *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := p.validateHandler(handler{exec: probe.Exec, http: probe.HTTPGet, tcp: probe.TCPSocket, grpc: probe.GRPC},
		at)
	for _, number := range []struct {
		name  string
		value *int32
	}{
		{"initialDelaySeconds", &probe.InitialDelaySeconds}, {"timeoutSeconds", &probe.TimeoutSeconds},
		{"periodSeconds", &probe.PeriodSeconds}, {"successThreshold", &probe.SuccessThreshold},
		{"failureThreshold", &probe.FailureThreshold},
	} {
		errs = append(errs, notNegative(at.Child(number.name), number.value)...)
	}
	grace := at.Child("terminationGracePeriodSeconds")
	errs = append(errs, positive(grace, probe.TerminationGracePeriodSeconds)...)
	if !ends && probe.TerminationGracePeriodSeconds != nil {
		errs = append(errs,
			field.Invalid(grace, *probe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	if ends && probe.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(at.Child("successThreshold"), probe.SuccessThreshold, "must be 1"))
	}
	return errs
}

// validateProbes validates when a container is started again, and what it runs at its start and its end.
func (p podRules) validateProbes(c *corev1.Container, at *field.Path) field.ErrorList {
	errs := p.validateProbe(c.LivenessProbe, true, at.Child("livenessProbe"))
	errs = append(errs, p.validateProbe(c.ReadinessProbe, false, at.Child("readinessProbe"))...)
	errs = append(errs, p.validateProbe(c.StartupProbe, true, at.Child("startupProbe"))...)
	if c.Lifecycle == nil {
		return errs
	}
	at = at.Child("lifecycle")
	errs = append(errs, p.validateHook(c.Lifecycle.PostStart, at.Child("postStart"))...)
	return append(errs, p.validateHook(c.Lifecycle.PreStop, at.Child("preStop"))...)
}

// validateHook requires one handler.
func (p podRules) validateHook(hook *corev1.LifecycleHandler, at *field.Path) field.ErrorList {
	if hook == nil {
		return nil
	}
	return p.validateHandler(handler{exec: hook.Exec, http: hook.HTTPGet, tcp: hook.TCPSocket, sleep: hook.Sleep}, at)
}

func (p podRules) validateHandler(h handler, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	handlers := 0
	use := func(name string, validate func(*field.Path) field.ErrorList) {
		handlers++
		if handlers > 1 {
			errs = append(errs, field.Forbidden(at.Child(name), "may not specify more than 1 handler type"))
			return
		}
		errs = append(errs, validate(at.Child(name))...)
	}
	if h.exec != nil {
		use("exec", func(at *field.Path) field.ErrorList {
			if len(h.exec.Command) == 0 {
				return field.ErrorList{field.Required(at.Child("command"), "")}
			}
			return nil
		})
	}
	if h.http != nil {
		use("httpGet", func(at *field.Path) field.ErrorList { return validateHTTPGet(h.http, at) })
	}
	if h.tcp != nil {
		use("tcpSocket", func(at *field.Path) field.ErrorList {
			return validateTargetPort(at.Child("port"), h.tcp.Port)
		})
	}
	if h.grpc != nil {
		use("grpc", func(at *field.Path) field.ErrorList { return validatePortNumber(at.Child("port"), h.grpc.Port) })
	}
	if h.sleep != nil {
		use("sleep", func(at *field.Path) field.ErrorList {
			return between(at, &h.sleep.Seconds, 0, ptr.Deref(p.spec.TerminationGracePeriodSeconds, math.MaxInt64))
		})
	}
	if handlers == 0 {
		errs = append(errs, field.Required(at, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(get *corev1.HTTPGetAction, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, header := range get.HTTPHeaders {
		errs = append(errs, invalid(at.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
	}
	if get.Path == "" {
		errs = append(errs, field.Required(at.Child("path"), ""))
	}
	errs = append(errs, validateTargetPort(at.Child("port"), get.Port)...)
	return append(errs, supported(at.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
}
