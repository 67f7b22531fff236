// SPDX-License-Identifier: Apache-2.0

// Calls the model as an application with cloud.google.com/go/compute/metadata does. Reads commands, writes answers: lines.
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
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	"cloud.google.com/go/compute/metadata"
)

const (
	scope = "https://www.googleapis.com/auth/cloud-platform"
	ask   = `{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}`
	model = "%s/v1/projects/%s/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"
)

// What cloud.google.com/go/compute/metadata gives, this client does not keep.
func call() (string, error) {
	project, err := metadata.ProjectIDWithContext(context.Background())
	if err != nil {
		return "", err
	}
	token, err := tokenOf("default")
	if err != nil {
		return "", err
	}
	return generate(token, project)
}

func tokenOf(account string) (string, error) {
	path := "instance/service-accounts/" + account + "/token?scopes=" + url.QueryEscape(scope)
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

func generate(token, project string) (string, error) {
	address := fmt.Sprintf(model, os.Getenv("GOOGLE_VERTEX_BASE_URL"), project)
	asked, err := http.NewRequest(http.MethodPost, address, strings.NewReader(ask))
	if err != nil {
		return "", err
	}
	asked.Header.Set("Authorization", "Bearer "+token)
	asked.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(asked)
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
	return metadata.ProjectIDWithContext(context.Background())
}

func foreign() (string, error) {
	return tokenOf("other@my-project.iam.gserviceaccount.com")
}

func identity() (string, error) {
	return metadata.GetWithContext(context.Background(),
		"instance/service-accounts/default/identity?audience=https://service.example")
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
		"call": call, "calls": call, "project": project, "foreign": foreign, "identity": identity,
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
