// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with golang.org/x/oauth2/google does.
package main

import (
	"context"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"postern/tests/clients/serve"
)

// An application finds its credentials once.
var found = sync.OnceValues(func() (*google.Credentials, error) {
	return google.FindDefaultCredentials(context.Background(), serve.Scope)
})

func call() (string, error) {
	creds, err := found()
	if err != nil {
		return "", err
	}
	client := oauth2.NewClient(context.Background(), creds.TokenSource)
	return serve.Generate(client, creds.ProjectID)
}

func project() (string, error) {
	creds, err := found()
	if err != nil {
		return "", err
	}
	return creds.ProjectID, nil
}

func foreign() (string, error) {
	source := google.ComputeTokenSource("other@my-project.iam.gserviceaccount.com", serve.Scope)
	token, err := source.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

func main() {
	serve.Commands(map[string]serve.Command{
		"call": call, "project": project, "foreign": foreign,
	})
}
