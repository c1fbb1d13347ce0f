package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"

	"paidonce/shared/localaws"
)

// A function that `sam local invoke` runs is in a container, where 127.0.0.1 is the container itself.
const hostFromContainer = "host.docker.internal"

// writeSAMEnvironment writes .local/sam-env.json: the environment that connects a function in a container to the stack.
func writeSAMEnvironment(checkout string, info localaws.Info) error {
	endpoint, err := url.Parse(info.AWSEndpoint)
	if err != nil {
		return err
	}
	endpoint.Host = net.JoinHostPort(hostFromContainer, endpoint.Port())
	text, err := json.MarshalIndent(map[string]map[string]string{"Parameters": {
		"AWS_ENDPOINT_URL": endpoint.String(),
		"TABLE_NAME":       info.Table,
		"EVENTS_QUEUE_URL": info.EventsQueueURL,
	}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(samEnvironment(checkout), append(text, '\n'), 0o644)
}

func removeSAMEnvironment(checkout string) error { return os.Remove(samEnvironment(checkout)) }

func samEnvironment(checkout string) string { return filepath.Join(checkout, ".local", "sam-env.json") }

// serveContainers listens on Docker's bridge and passes calls on to the local AWS services. On Linux containers reach the
// host by that address only. Close ends it.
func serveContainers(bridge string, info localaws.Info) (*http.Server, error) {
	target, err := url.Parse(info.AWSEndpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(bridge, target.Port()))
	if err != nil {
		return nil, fmt.Errorf("listen for containers on %s: %w", bridge, err)
	}
	server := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "paidonce: containers are not served any more:", err)
		}
	}()
	return server, nil
}
