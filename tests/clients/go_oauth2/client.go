// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with golang.org/x/oauth2/google does.
package main

import (
	"context"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	program "postern/tests/clients/go_program"
)

// An application finds its credentials once.
var found = sync.OnceValues(func() (*google.Credentials, error) {
	return google.FindDefaultCredentials(context.Background(), program.Scope)
})

func call() (string, error) {
	creds, err := found()
	if err != nil {
		return "", err
	}
	client := oauth2.NewClient(context.Background(), creds.TokenSource)
	return program.Generate(client, creds.ProjectID)
}

func project() (string, error) {
	creds, err := found()
	if err != nil {
		return "", err
	}
	return creds.ProjectID, nil
}

func foreign() (string, error) {
	source := google.ComputeTokenSource("other@my-project.iam.gserviceaccount.com", program.Scope)
	token, err := source.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

func main() {
	program.Serve(map[string]program.Command{
		"call": call, "calls": call, "project": project, "foreign": foreign,
	})
}
