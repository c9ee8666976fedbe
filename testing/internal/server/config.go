package server

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

// newConfig returns what all servers of the chain have in common. It turns off what serves a process that listens:
// metrics, profiles, limits of requests in flight, and the tickers that these have.
func newConfig(codecs serializer.CodecFactory, loopback *rest.Config) *genericapiserver.Config {
	c := genericapiserver.NewConfig(codecs)
	c.ExternalAddress = addresses.DefaultAddress
	c.LoopbackClientConfig = loopback
	c.BuildHandlerChainFunc = newChain
	c.FeatureGate = utilfeature.DefaultFeatureGate
	c.EffectiveVersion = release{compatibility.DefaultBuildEffectiveVersion()}
	c.EnableIndex, c.EnableProfiling, c.EnableMetrics, c.EnableDiscovery = false, false, false, false
	c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight = 0, 0
	c.StorageObjectCountTracker = nil
	c.DisabledPostStartHooks.Insert("max-in-flight-filter")
	// The check of the log starts a goroutine for the rest of the process.
	checks := []healthz.HealthChecker{healthz.PingHealthz}
	c.HealthzChecks, c.LivezChecks, c.ReadyzChecks = checks, slices.Clone(checks), slices.Clone(checks)
	c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	return c
}

// release is the version of the libraries. They say so themselves only in a binary that Kubernetes has built.
type release struct {
	basecompatibility.EffectiveVersion
}

// Info implements [basecompatibility.EffectiveVersion].
func (r release) Info() *apimachineryversion.Info {
	info := *r.EffectiveVersion.Info()
	info.Major, info.Minor, _ = strings.Cut(baseversion.DefaultKubeBinaryVersion, ".")
	info.GitVersion = "v" + baseversion.DefaultKubeBinaryVersion + ".0+espalier"
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", ""
	return &info
}

// newChain returns the filters of a request. Those are left out that protect a process from its clients: the limit of
// time with a goroutine for each request, the limits of requests in flight, audit, and tracing.
func newChain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = filters.WithAuthorization(handler, c.Authorization.Authorizer, c.Serializer)
	handler = impersonation.WithConstrainedImpersonation(handler, c.Authorization.Authorizer, c.Serializer)
	handler = filters.WithAuthentication(handler, c.Authentication.Authenticator, filters.Unauthorized(c.Serializer),
		c.Authentication.APIAudiences, c.Authentication.RequestHeaderConfig)
	handler = filters.WithWarningRecorder(handler)
	handler = filters.WithRequestDeadline(handler, nil, nil, c.LongRunningFunc, c.Serializer, c.RequestTimeout)
	handler = filters.WithCacheControl(handler)
	handler = filters.WithRequestInfo(handler, c.RequestInfoResolver)
	handler = filters.WithRequestReceivedTimestamp(handler)
	handler = genericfilters.WithPanicRecovery(handler, c.RequestInfoResolver)
	return filters.WithAuditInit(handler)
}
