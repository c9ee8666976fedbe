package server

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Credentials say who a client is.
type Credentials interface {
	authenticator.Request
	// Token returns a bearer token of a service account. It is accepted until a time.
	Token(namespace, account string, until time.Time) (string, error)
}

// credentials returns those of the options, or the default.
func (o Options) credentials() Credentials {
	if o.Credentials == nil {
		return nameTokens{}
	}
	return o.Credentials
}

// nameTokens takes the bearer token of a request for the name of its user. Without one, the user is an administrator.
type nameTokens struct{}

var _ Credentials = nameTokens{}

// AuthenticateRequest implements [Credentials].
func (nameTokens) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	name, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return &authenticator.Response{User: &user.DefaultInfo{
			Name: "kubernetes-admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
		}}, true, nil
	}
	if name == "" {
		return nil, false, nil
	}
	if namespace, account, err := serviceaccount.SplitUsername(name); err == nil {
		info := serviceaccount.UserInfo(namespace, account, "").(*user.DefaultInfo)
		info.Groups = append(info.Groups, user.AllAuthenticated)
		return &authenticator.Response{User: info}, true, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: name, Groups: []string{user.AllAuthenticated},
	}}, true, nil
}

// Token implements [Credentials]. It does not expire.
func (nameTokens) Token(namespace, account string, _ time.Time) (string, error) {
	return serviceaccount.MakeUsername(namespace, account), nil
}
