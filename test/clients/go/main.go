// A session of the official Go SDK: connects to the MCP endpoint of argument 1 with the API key in the variable API_KEY,
// lists the tools, makes the calls that stand as JSON on its standard input, and prints what it saw as JSON. A session
// that could not be opened is an error on standard error and exit code 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const bound = 2 * time.Minute

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type outcome struct {
	IsError    bool   `json:"isError"`
	Text       string `json:"text"`
	Structured any    `json:"structured,omitempty"`
}

type session struct {
	Tools    []string  `json:"tools"`
	Outcomes []outcome `json:"outcomes"`
}

// withKey adds the API key to every request.
type withKey struct{ key string }

func (t withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+t.key)
	return http.DefaultTransport.RoundTrip(request)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Getenv("API_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoint, key string) error {
	var calls []call
	if err := json.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		return fmt.Errorf("calls on standard input: %w", err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{
		Endpoint:   endpoint,
		HTTPClient: &http.Client{Transport: withKey{key}},
	}
	connected, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	seen, err := talk(ctx, connected, calls)
	if err != nil {
		return err
	}
	if err := connected.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

func talk(ctx context.Context, connected *mcp.ClientSession, calls []call) (*session, error) {
	seen := &session{}
	for tool, err := range connected.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		seen.Tools = append(seen.Tools, tool.Name)
	}
	for _, call := range calls {
		result, err := connected.CallTool(ctx, &mcp.CallToolParams{Name: call.Name, Arguments: call.Arguments})
		if err != nil {
			return nil, fmt.Errorf("tools/call %s: %w", call.Name, err)
		}
		seen.Outcomes = append(seen.Outcomes, outcomeOf(result))
	}
	if err := connected.Ping(ctx, nil); err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	return seen, nil
}

func outcomeOf(result *mcp.CallToolResult) outcome {
	seen := outcome{IsError: result.IsError, Structured: result.StructuredContent}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			seen.Text += text.Text
		}
	}
	return seen
}
