package storage

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
)

// The messages of expired lists are those of kube-apiserver, which clients and tests look for.
const (
	listExpired  = "The resourceVersion for the provided list is too old."
	watchExpired = "The resourceVersion for the provided watch is too old."

	continueExpired = "The provided continue parameter is too old to display a consistent list result. You can " +
		"start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the remainder of the results, which may then not be consistent with those listed before."
)

// listError returns the answer to a list of a revision that history cannot read. A list that continues at a key gets a
// token by which it can go on at the current revision.
func listError(err error, h *history, revision int64, start, prefix string) error {
	switch {
	case errors.Is(err, errFuture):
		return storage.NewTooLargeResourceVersionError(uint64(revision), uint64(h.revision), 0)
	case start == "":
		return apierrors.NewResourceExpired(listExpired)
	}
	expired := apierrors.NewResourceExpired(continueExpired)
	token, err := storage.EncodeContinue(start, prefix, -1)
	if err != nil {
		return err
	}
	expired.ErrStatus.ListMeta.Continue = token
	return expired
}

// watchError returns the status that ends a watch.
func watchError(err error) *metav1.Status {
	if errors.Is(err, errCompacted) {
		err = apierrors.NewResourceExpired(watchExpired)
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return &s
}

// corruptDeletion is the error of a deletion event whose object cannot be decoded.
func corruptDeletion(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: "saw a DELETED event, but object data is corrupt - " + err.Error(),
	}}
}
