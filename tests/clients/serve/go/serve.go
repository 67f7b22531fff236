// SPDX-License-Identifier: Apache-2.0

// Package serve runs a client in Go, and has what they share: the call of the model.
package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Scope is what an application asks for.
const Scope = "https://www.googleapis.com/auth/cloud-platform"

const (
	ask   = `{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}`
	model = "%s/v1/projects/%s/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"
)

// Command does what its name says, and gives what it was told.
type Command func() (string, error)

// Generate asks the model, with a client that authorizes its requests.
func Generate(client *http.Client, project string) (string, error) {
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
	return textOf(body)
}

func textOf(body []byte) (string, error) {
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

type outcome struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func outcomeOf(do Command) outcome {
	text, err := do()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Text: text}
}

// Commands reads commands and writes outcomes: lines.
func Commands(commands map[string]Command) {
	answers := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, count, _ := strings.Cut(lines.Text(), " ")
		many, err := strconv.Atoi(count)
		if err != nil {
			many = 1
		}
		if command == "calls" { // so many of them at the same time
			command = "call"
		}
		outcomes := make([]outcome, many)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Go(func() { outcomes[i] = outcomeOf(commands[command]) })
		}
		all.Wait()
		if err := answers.Encode(outcomes); err != nil {
			panic(err)
		}
	}
}
