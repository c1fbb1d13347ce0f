package dev

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"paidonce/shared/localaws"
)

// TestAnnounce: others find the stack until the end, containers by their own address too.
func TestAnnounce(t *testing.T) {
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer services.Close()
	bridges := map[string]string{"for this machine": ""}
	if runtime.GOOS == "linux" { // elsewhere containers reach the host without a bridge, and 127.0.0.2 is no address
		bridges["for containers"] = "127.0.0.2"
	}
	for name, bridge := range bridges {
		t.Run(name, func(t *testing.T) {
			checkout := t.TempDir()
			end, err := announce(checkout, localaws.Info{AWSEndpoint: services.URL, Table: "t"}, options{containerBridge: bridge})
			if err != nil {
				t.Fatal(err)
			}
			info, err := localaws.ReadInfo(checkout)
			if err != nil || info.Table != "t" {
				t.Errorf("read %+v, %v", info, err)
			}
			text, err := os.ReadFile(samEnvironment(checkout))
			if err != nil || !strings.Contains(string(text), "http://"+hostFromContainer+":") {
				t.Errorf("environment %s, %v", text, err)
			}
			if bridge != "" {
				at, err := url.Parse(services.URL)
				if err != nil {
					t.Fatal(err)
				}
				response, err := http.Get("http://" + bridge + ":" + at.Port())
				if err != nil || response.StatusCode != http.StatusTeapot {
					t.Errorf("a container gets %v, %v", response, err)
				}
			}
			if err := end(); err != nil {
				t.Error(err)
			}
			left, err := fs.Glob(os.DirFS(checkout), ".local/*")
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestTakenPortsAreNamed(t *testing.T) {
	taken, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for flag, o := range map[string]options{
		"--api-port": {apiPort: port}, "--gateway-port": {gatewayPort: port}, "--aws-port": {awsPort: port}, "--shop-port": {shopPort: port},
	} {
		err := o.portsAreFree()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d of 127.0.0.1 is in use", port)) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if err := (options{}).portsAreFree(); err != nil {
		t.Errorf("no port asked for: %v", err)
	}
}
