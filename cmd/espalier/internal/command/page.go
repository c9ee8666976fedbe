package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/proxy"
)

// pageOptions are the flags of the command page.
type pageOptions struct {
	reachOptions
	// port is where the proxy listens; 0 is a free port.
	port int
}

func newPage() *cobra.Command {
	o := &pageOptions{reachOptions: newReachOptions()}
	c := &cobra.Command{
		Use:   "page TARGET",
		Short: "Open the live page of an operator for a browser",
		Long: `Open the live page of an operator for a browser, until interrupted.

TARGET is deployment/NAME, statefulset/NAME, pod/NAME, or the URL of the page. Of
several pods the one that leads is asked.

The page wants a bearer token, which a browser does not send. So the command
serves the page on 127.0.0.1, and adds the token of the user of the kubeconfig:
what you see is what that user may see. It prints the address to open, which has
a key, so that nobody else on this machine acts as you.

A kubeconfig with a client certificate has no token. Then --service-account takes
one of a ServiceAccount for which you may create tokens.`,
		Example: `  espalier page deployment/shop-operator -n shop-system

  # the page of an operator that runs on this machine
  espalier page https://127.0.0.1:8443/espalier/ --operator-ca ca.crt --token "$TOKEN"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				const why = "one TARGET is needed, not %d: deployment/NAME, statefulset/NAME, pod/NAME or a URL"
				return fmt.Errorf(why, len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], c.OutOrStdout()) },
	}
	o.addFlags(c)
	c.Flags().IntVar(&o.port, "port", 0, "the port of 127.0.0.1 where the page is served; 0 takes a free one")
	return c
}

func (o *pageOptions) run(ctx context.Context, target string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	page, transport, ended, err := o.connect(ctx, target)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return err
	}
	handler := proxy.New(listener.Addr(), page, transport)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(out, "The page is at %s until Ctrl-C.\n", handler.Open())
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, server.Close(), unlessClosed(<-served))
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
