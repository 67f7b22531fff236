// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with cloud.google.com/go/auth does. Reads commands, writes answers: lines.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/idtoken"
	"cloud.google.com/go/auth/httptransport"
)

const (
	scope = "https://www.googleapis.com/auth/cloud-platform"
	ask   = `{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}`
	model = "%s/v1/projects/%s/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"
)

// An application detects its credentials once.
var detected = sync.OnceValues(func() (*auth.Credentials, error) {
	return credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{scope}})
})

func call() (string, error) {
	creds, err := detected()
	if err != nil {
		return "", err
	}
	project, err := creds.ProjectID(context.Background())
	if err != nil {
		return "", err
	}
	client, err := httptransport.NewClient(&httptransport.Options{Credentials: creds})
	if err != nil {
		return "", err
	}
	return generate(client, project)
}

func generate(client *http.Client, project string) (string, error) {
	url := fmt.Sprintf(model, os.Getenv("GOOGLE_VERTEX_BASE_URL"), project)
	answer, err := client.Post(url, "application/json", strings.NewReader(ask))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", answer.Status, body)
	}
	var said struct {
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return "", err
	}
	if len(said.Candidates) != 1 || len(said.Candidates[0].Content.Parts) != 1 {
		return "", errors.New("the model said: " + string(body))
	}
	return said.Candidates[0].Content.Parts[0].Text, nil
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

type outcome struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func outcomeOf(do func() (string, error)) outcome {
	text, err := do()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Text: text}
}

func main() {
	commands := map[string]func() (string, error){
		"call": call, "calls": call, "project": project, "identity": identity,
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, count, _ := strings.Cut(lines.Text(), " ")
		many, err := strconv.Atoi(count)
		if err != nil {
			many = 1
		}
		outcomes := make([]outcome, many)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Add(1)
			go func() {
				defer all.Done()
				outcomes[i] = outcomeOf(commands[command])
			}()
		}
		all.Wait()
		var line bytes.Buffer
		if err := json.NewEncoder(&line).Encode(outcomes); err != nil {
			panic(err)
		}
		os.Stdout.Write(line.Bytes())
	}
}
