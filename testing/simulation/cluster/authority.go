package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

const (
	// lifetime is how long certificates are valid: longer than a cluster in memory lives.
	lifetime = 365 * 24 * time.Hour
	// clockSkew is how long before they were made certificates are valid.
	clockSkew = time.Hour
)

// authority makes the certificates and tokens of a cluster, and accepts no others. Its key is in memory alone. It is
// safe for concurrent use.
type authority struct {
	authenticator.Request
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	// bundle is the certificate as PEM.
	bundle []byte

	mu     sync.Mutex
	serial int64
	// tokens are those that were issued, by their hashes.
	tokens map[[sha256.Size]byte]issued
}

var _ server.Credentials = &authority{}

// issued is whom a token is for, and until when; the zero time is always.
type issued struct {
	user  user.Info
	until time.Time
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, tokens: map[[sha256.Size]byte]issued{}}
	a.certificate = a.template(pkix.Name{CommonName: "espalier-cluster-ca"})
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	signed, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(signed); err != nil {
		return nil, err
	}
	a.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	trusted := x509request.DefaultVerifyOptions()
	trusted.Roots = x509.NewCertPool()
	trusted.Roots.AddCert(a.certificate)
	a.Request = group.NewAuthenticatedGroupAdder(union.New(
		x509request.New(trusted, x509request.CommonNameUserConversion),
		bearertoken.New(authenticator.TokenFunc(a.authenticateToken)),
	))
	return a, nil
}

// template returns a certificate to sign.
func (a *authority) template(subject pkix.Name) *x509.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: subject,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// sign returns a certificate and its key, both as PEM.
func (a *authority) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}

// server returns a certificate for an address, and for the names of the loopback interface. For all addresses of the
// machine it is one for each of them.
func (a *authority) server(address net.Addr) (tls.Certificate, error) {
	template := a.template(pkix.Name{CommonName: "kube-apiserver"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		template.IPAddresses = append(template.IPAddresses, tcp.IP)
	} else if all, err := net.InterfaceAddrs(); err == nil {
		for _, one := range all {
			if network, ok := one.(*net.IPNet); ok {
				template.IPAddresses = append(template.IPAddresses, network.IP)
			}
		}
	}
	certificate, key, err := a.sign(template)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// client returns a certificate for a user, and its key.
func (a *authority) client(u User) (certificate, key []byte, err error) {
	template := a.template(pkix.Name{CommonName: u.Name, Organization: u.Groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// Token implements [server.Credentials].
func (a *authority) Token(namespace, account string, until time.Time) (string, error) {
	return a.token(serviceaccount.UserInfo(namespace, account, ""), until)
}

// token returns a token for a user that cannot be guessed.
func (a *authority) token(u user.Info, until time.Time) (string, error) {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens[sha256.Sum256([]byte(token))] = issued{u, until}
	return token, nil
}

// authenticateToken is an [authenticator.TokenFunc].
func (a *authority) authenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	hash := sha256.Sum256([]byte(token))
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.tokens[hash]
	if ok && !found.until.IsZero() && time.Now().After(found.until) {
		delete(a.tokens, hash)
		ok = false
	}
	return &authenticator.Response{User: found.user}, ok, nil
}
