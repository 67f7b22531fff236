// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with cloud.google.com/go/auth does.
package main

import (
	"context"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/idtoken"
	"cloud.google.com/go/auth/httptransport"

	"postern/tests/clients/serve"
)

// An application detects its credentials once.
var detected = sync.OnceValues(func() (*auth.Credentials, error) {
	return credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{serve.Scope}})
})

func call() (string, error) {
	project, err := project()
	if err != nil {
		return "", err
	}
	creds, err := detected()
	if err != nil {
		return "", err
	}
	client, err := httptransport.NewClient(&httptransport.Options{Credentials: creds})
	if err != nil {
		return "", err
	}
	return serve.Generate(client, project)
}

func project() (string, error) {
	creds, err := detected()
	if err != nil {
		return "", err
	}
	return creds.ProjectID(context.Background())
}

func identity() (string, error) {
	creds, err := idtoken.NewCredentials(&idtoken.Options{Audience: "https://service.example"})
	if err != nil {
		return "", err
	}
	token, err := creds.Token(context.Background())
	if err != nil {
		return "", err
	}
	return token.Value, nil
}

func main() {
	serve.Commands(map[string]serve.Command{
		"call": call, "project": project, "identity": identity,
	})
}
