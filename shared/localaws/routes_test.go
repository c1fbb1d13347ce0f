package localaws

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"
	"github.com/google/go-cmp/cmp"
)

// A later document adds and removes routes, and leaves those alone that are in both.
func TestRoutesFollowTheDocument(t *testing.T) {
	engine := startEngine(t)
	client := apigatewayv2.NewFromConfig(engine.Config())
	api, err := client.CreateApi(t.Context(), &apigatewayv2.CreateApiInput{Name: aws.String("api"), ProtocolType: types.ProtocolTypeHttp})
	if err != nil {
		t.Fatal(err)
	}
	table := routeTable{client: client, apiID: *api.ApiId, aliases: map[string]string{
		"WebhookAlias": "arn:aws:lambda:ap-south-1:000000000000:function:webhook:live",
	}}
	update := func(routes ...string) map[string]string {
		t.Helper()
		paths := map[string]any{}
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			paths[path] = map[string]any{method: map[string]any{"x-amazon-apigateway-integration": map[string]any{
				"uri":                  map[string]any{"Fn::Sub": "arn:aws:apigateway:x:lambda:path/2015-03-31/functions/${WebhookAlias}/invocations"},
				"payloadFormatVersion": "2.0", "timeoutInMillis": 6000,
			}}}
		}
		if err := table.update(t.Context(), map[string]any{"paths": paths}); err != nil {
			t.Fatal(err)
		}
		found, err := client.GetRoutes(t.Context(), &apigatewayv2.GetRoutesInput{ApiId: api.ApiId})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]string{}
		for _, r := range found.Items {
			ids[*r.RouteKey] = *r.RouteId
		}
		if len(ids) != len(found.Items) {
			t.Errorf("%d routes with %d keys", len(found.Items), len(ids))
		}
		return ids
	}
	before := update("post /stays", "get /goes")
	after := update("post /stays", "get /new")
	if diff := cmp.Diff([]string{"GET /new", "POST /stays"}, slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if before["POST /stays"] != after["POST /stays"] {
		t.Error("a route that stays was made anew: requests in between find none")
	}
}
