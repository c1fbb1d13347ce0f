package localaws

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"
	"go.yaml.in/yaml/v3"
)

// apiBody is the part of an HTTP API's OpenAPI document that SAM writes for
// the routes of its functions.
type apiBody struct {
	Paths map[string]map[string]apiOperation `yaml:"paths"` // by path and method
}

type apiOperation struct {
	Security    []map[string]any `yaml:"security"`
	Integration struct {
		URI                  map[string]string `yaml:"uri"` // {"Fn::Sub": "arn:...functions/${<alias>}/invocations"}
		PayloadFormatVersion string            `yaml:"payloadFormatVersion"`
		TimeoutInMillis      int32             `yaml:"timeoutInMillis"`
	} `yaml:"x-amazon-apigateway-integration"`
}

func (o apiOperation) needsIAM() bool {
	return slices.ContainsFunc(o.Security, func(scheme map[string]any) bool {
		_, found := scheme["AWS_IAM"]
		return found
	})
}

// routeTable gives an API the routes of its OpenAPI document, which the
// engine does not read.
type routeTable struct {
	client     *apigatewayv2.Client
	apiID      string
	aliases    map[string]string // ARN of each function's alias by logical id
	enforceIAM bool
}

// update creates the routes that the API does not have yet, and deletes those that the document does not have any more.
// Routes that stay are left alone: they lead to an alias, whatever version that points to.
func (c routeTable) update(ctx context.Context, body any) error {
	text, err := yaml.Marshal(body)
	if err != nil {
		return fmt.Errorf("localaws: routes: %w", err)
	}
	var document apiBody
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("localaws: routes: %w", err)
	}
	existing, err := c.client.GetRoutes(ctx, &apigatewayv2.GetRoutesInput{ApiId: aws.String(c.apiID)})
	if err != nil {
		return fmt.Errorf("localaws: routes: %w", err)
	}
	old := map[string]string{} // id by key
	for _, route := range existing.Items {
		old[*route.RouteKey] = *route.RouteId
	}
	for path, operations := range document.Paths {
		for method, operation := range operations {
			key := strings.ToUpper(method) + " " + path
			if old[key] == "" {
				if err := c.createRoute(ctx, key, operation); err != nil {
					return fmt.Errorf("localaws: create route %s: %w", key, err)
				}
			}
			delete(old, key)
		}
	}
	for key, id := range old {
		if _, err := c.client.DeleteRoute(ctx, &apigatewayv2.DeleteRouteInput{ApiId: aws.String(c.apiID), RouteId: aws.String(id)}); err != nil {
			return fmt.Errorf("localaws: delete route %s: %w", key, err)
		}
	}
	return nil
}

func (c routeTable) createRoute(ctx context.Context, key string, operation apiOperation) error {
	_, afterStart, _ := strings.Cut(operation.Integration.URI["Fn::Sub"], "functions/${")
	alias, _, _ := strings.Cut(afterStart, "}")
	if c.aliases[alias] == "" {
		return fmt.Errorf("no function in %v", operation.Integration.URI)
	}
	integration, err := c.client.CreateIntegration(ctx, &apigatewayv2.CreateIntegrationInput{
		ApiId:                aws.String(c.apiID),
		IntegrationType:      types.IntegrationTypeAwsProxy,
		IntegrationUri:       aws.String(c.aliases[alias]),
		PayloadFormatVersion: aws.String(operation.Integration.PayloadFormatVersion),
		TimeoutInMillis:      aws.Int32(operation.Integration.TimeoutInMillis),
	})
	if err != nil {
		return err
	}
	authorization := types.AuthorizationTypeNone
	if c.enforceIAM && operation.needsIAM() {
		authorization = types.AuthorizationTypeAwsIam
	}
	_, err = c.client.CreateRoute(ctx, &apigatewayv2.CreateRouteInput{
		ApiId:             aws.String(c.apiID),
		RouteKey:          aws.String(key),
		Target:            aws.String("integrations/" + *integration.IntegrationId),
		AuthorizationType: authorization,
	})
	return err
}

// apiFront gives the HTTP API a plain URL of its own: the engine finds an API
// by its host name, which only a client that sets the Host can reach.
type apiFront struct {
	url    string
	server *http.Server
}

func newAPIFront(port int, engineURL, apiID string) (*apiFront, error) {
	target, err := url.Parse(engineURL)
	if err != nil {
		return nil, fmt.Errorf("localaws: API front: %w", err)
	}
	listener, err := listen(port)
	if err != nil {
		return nil, err
	}
	front := &apiFront{
		url: "http://" + listener.Addr().String(),
		server: &http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler: &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) {
					r.SetURL(target)
					r.Out.Host = apiID + ".execute-api.localhost:" + target.Port()
				},
				ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusServiceUnavailable)
					w.Write([]byte(`{"message":"Service Unavailable"}`)) // as the HTTP API says it
				},
			},
		},
	}
	go front.server.Serve(listener) // ends with Close
	return front, nil
}
