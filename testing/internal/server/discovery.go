package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// groupList lists the groups for clients that do not ask for aggregated discovery, which has them all: the list of the
// library lacks the groups of custom resources.
type groupList struct{ aggregated http.Handler }

// acceptAggregated asks for aggregated discovery.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// ServeHTTP implements [http.Handler].
func (l groupList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list, err := l.list(r)
	if err != nil {
		responsewriters.ErrorNegotiated(apierrors.NewInternalError(err), codecs(), schema.GroupVersion{}, w, r)
		return
	}
	responsewriters.WriteObjectNegotiated(codecs(), negotiation.DefaultEndpointRestrictions,
		schema.GroupVersion{Version: "v1"}, w, r, http.StatusOK, list, false)
}

func (l groupList) list(r *http.Request) (*metav1.APIGroupList, error) {
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Accept": {acceptAggregated}}
	response, err := RoundTripper(l.aggregated).RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var found apidiscoveryv2.APIGroupDiscoveryList
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("read aggregated discovery: %w", err)
	}
	list := &metav1.APIGroupList{}
	for _, item := range found.Items {
		group := metav1.APIGroup{Name: item.Name}
		for _, v := range item.Versions {
			gv := schema.GroupVersion{Group: item.Name, Version: v.Version}
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: gv.String(), Version: v.Version,
			})
		}
		if len(group.Versions) > 0 {
			group.PreferredVersion = group.Versions[0]
			list.Groups = append(list.Groups, group)
		}
	}
	return list, nil
}
