// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with golang.org/x/oauth2/google does. Reads commands, writes answers: lines.
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

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	scope = "https://www.googleapis.com/auth/cloud-platform"
	ask   = `{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}`
	model = "%s/v1/projects/%s/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"
)

// An application finds its credentials once.
var found = sync.OnceValues(func() (*google.Credentials, error) {
	return google.FindDefaultCredentials(context.Background(), scope)
})

func call() (string, error) {
	creds, err := found()
	if err != nil {
		return "", err
	}
	return generate(oauth2.NewClient(context.Background(), creds.TokenSource), creds.ProjectID)
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
	creds, err := found()
	if err != nil {
		return "", err
	}
	return creds.ProjectID, nil
}

func foreign() (string, error) {
	token, err := google.ComputeTokenSource("other@my-project.iam.gserviceaccount.com", scope).Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
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
		"call": call, "calls": call, "project": project, "foreign": foreign,
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
