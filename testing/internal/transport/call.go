package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

var requests = apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// describe tells what the request is.
func (x *exchange) describe() error {
	info, err := requests.NewRequestInfo(x.request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", x.request.Method, x.request.URL.Path, err)
	}
	x.call = fault.Call{Actor: x.client.actor, Verb: info.Verb, Path: info.Path}
	x.entry = &Entry{
		Resource:    schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	}
	if !info.IsResourceRequest {
		x.call.Verb = fault.Discover
		return nil
	}
	if kind := x.network.options.Kind; kind != nil {
		x.entry.Kind = kind(x.entry.Resource)
	}
	if x.client.ahead != 0 {
		if err := x.moveRequest(); err != nil {
			return err
		}
	}
	switch {
	case info.Verb == fault.Create && info.Name == "":
		return x.describeCreate()
	case info.Verb == fault.List || info.Verb == fault.Watch:
		x.describeSelection(info)
	case info.Verb == fault.Patch && x.request.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType):
		x.call.Verb = fault.Apply
	}
	return nil
}

// describeCreate adds the name that is in the body.
func (x *exchange) describeCreate() error {
	body, err := x.readBody()
	if err != nil {
		return err
	}
	x.entry.Name = nameIn(body)
	x.call.Path += "/" + x.entry.Name
	return nil
}

// describeSelection adds what makes two lists or watches of a resource differ.
func (x *exchange) describeSelection(info *apirequest.RequestInfo) {
	query := url.Values{}
	if info.LabelSelector != "" {
		query.Set("labelSelector", info.LabelSelector)
	}
	if info.FieldSelector != "" {
		query.Set("fieldSelector", info.FieldSelector)
	}
	if strings.Contains(x.request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		query.Set("as", "PartialObjectMetadata")
	}
	if len(query) > 0 {
		x.entry.Selection, _ = url.QueryUnescape(query.Encode())
		x.call.Path += "?" + query.Encode()
	}
}

// readBody returns the body, which can be read again.
func (x *exchange) readBody() ([]byte, error) {
	if x.request.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(x.request.Body)
	_ = x.request.Body.Close()
	x.setBody(body)
	if err != nil {
		return nil, fmt.Errorf("read the body of %s %s: %w", x.request.Method, x.request.URL.Path, err)
	}
	return body, nil
}

func (x *exchange) setBody(body []byte) {
	x.request.Body, x.request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	x.request.GetBody = nil
}

var protobufPrefix = []byte("k8s\x00")

// nameIn returns the name of an object, or else its generateName. In protobuf as in JSON, the metadata of each object
// is where that of PartialObjectMetadata is.
func nameIn(body []byte) string {
	obj := &metav1.PartialObjectMetadata{}
	if encoded, ok := bytes.CutPrefix(body, protobufPrefix); ok {
		unknown := &runtime.Unknown{}
		if unknown.Unmarshal(encoded) != nil || obj.Unmarshal(unknown.Raw) != nil {
			return ""
		}
	} else if json.Unmarshal(body, obj) != nil {
		return ""
	}
	if obj.Name == "" {
		return obj.GenerateName
	}
	return obj.Name
}

// setTimeout has the plan decide how long a watch lasts if the client left it to chance, as reflectors do.
func (x *exchange) setTimeout() {
	query := x.request.URL.Query()
	wanted, err := strconv.Atoi(query.Get("timeoutSeconds"))
	least, most := int(plan.LeastWatchTimeout/time.Second), int(plan.MostWatchTimeout/time.Second)
	if err != nil || wanted < least || wanted > most {
		return
	}
	drawn := x.network.options.Plan.WatchTimeout(x.call)
	query.Set("timeoutSeconds", strconv.Itoa(int(drawn/time.Second)))
	x.request.URL.RawQuery = query.Encode()
}
