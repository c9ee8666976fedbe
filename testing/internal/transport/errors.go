package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/fault"
)

// The errors of connections that are refused and broken are those of a network, because client-go tries again after
// some of them.
var (
	errRefused error = &net.OpError{
		Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}
	errReset error = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	// errDead is what only the rest of a dead process sees.
	errDead = fmt.Errorf("the process is dead: %w", context.Canceled)
)

var errPlan = errors.New("the plan says so")

// refusal is the answer of an API server that does not do what it is asked.
func (x *exchange) refusal(struck fault.Fault) *http.Response {
	var status *apierrors.StatusError
	switch struck.Kind {
	case fault.Conflicts:
		status = apierrors.NewConflict(x.entry.Resource, x.entry.Name, errPlan)
	case fault.Throttles:
		status = apierrors.NewTooManyRequests(errPlan.Error(), seconds(struck.Delay))
	case fault.Expires:
		status = apierrors.NewResourceExpired(errPlan.Error())
	default:
		status = apierrors.NewInternalError(errPlan)
	}
	status.ErrStatus.Kind, status.ErrStatus.APIVersion = "Status", "v1"
	body, err := json.Marshal(status.ErrStatus)
	if err != nil {
		body = []byte(err.Error())
	}
	header := http.Header{"Content-Type": {runtime.ContentTypeJSON}}
	if struck.Kind == fault.Throttles {
		header.Set("Retry-After", strconv.Itoa(seconds(struck.Delay)))
	}
	code := int(status.ErrStatus.Code)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: x.request,
	}
}

// seconds returns a duration in full seconds, and at least one.
func seconds(d time.Duration) int { return max(int(math.Ceil(d.Seconds())), 1) }
