// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with cloud.google.com/go/compute/metadata does.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"cloud.google.com/go/compute/metadata"

	"postern/tests/clients/serve"
)

// bearer authorizes each request with a token.
type bearer string

func (token bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	own := request.Clone(request.Context())
	own.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(own)
}

// What cloud.google.com/go/compute/metadata gives, this client does not keep.
func call() (string, error) {
	project, err := project()
	if err != nil {
		return "", err
	}
	token, err := tokenOf("default")
	if err != nil {
		return "", err
	}
	return serve.Generate(&http.Client{Transport: bearer(token)}, project)
}

func tokenOf(account string) (string, error) {
	path := "instance/service-accounts/" + account + "/token?scopes=" + url.QueryEscape(serve.Scope)
	answer, err := metadata.GetWithContext(context.Background(), path)
	if err != nil {
		return "", err
	}
	var token struct {
		Value string `json:"access_token"`
	}
	err = json.Unmarshal([]byte(answer), &token)
	return token.Value, err
}

func project() (string, error) {
	return metadata.ProjectIDWithContext(context.Background())
}

func foreign() (string, error) {
	return tokenOf("other@my-project.iam.gserviceaccount.com")
}

func identity() (string, error) {
	return metadata.GetWithContext(context.Background(),
		"instance/service-accounts/default/identity?audience=https://service.example")
}

func main() {
	serve.Commands(map[string]serve.Command{
		"call": call, "project": project, "foreign": foreign, "identity": identity,
	})
}
