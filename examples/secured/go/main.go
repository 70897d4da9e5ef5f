// Against a Trestle server that wants TLS and a token: creates a table, writes a row, reads it.
//
//	go run . ENDPOINT CA.PEM TOKEN-FILE create write read
//
// With an empty ENDPOINT it goes where BIGTABLE_EMULATOR_HOST says, without either.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strings"

	"cloud.google.com/go/bigtable"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// connection is what each client is told.
func connection(endpoint, authority, tokenFile string) ([]option.ClientOption, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", authority)
	}
	transport := credentials.NewTLS(&tls.Config{RootCAs: roots})
	return []option.ClientOption{
		option.WithEndpoint(endpoint),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(transport)),
		option.WithTokenSource(oauth2.StaticTokenSource(
			&oauth2.Token{AccessToken: strings.TrimSpace(string(token))})),
	}, nil
}

func open(ctx context.Context, options []option.ClientOption) (*bigtable.Client, error) {
	return bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{}, // they would go to Google's monitoring
	}, options...)
}

func create(ctx context.Context, options []option.ClientOption) error {
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", options...)
	if err != nil {
		return err
	}
	defer admin.Close()
	return admin.CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID:        "greetings",
		ColumnFamilies: map[string]bigtable.Family{"f": {}},
	})
}

func write(ctx context.Context, table *bigtable.Table) error {
	mutation := bigtable.NewMutation()
	mutation.Set("f", "text", bigtable.Now(), []byte("world"))
	return table.Apply(ctx, "hello", mutation)
}

func read(ctx context.Context, table *bigtable.Table) error {
	row, err := table.ReadRow(ctx, "hello")
	if err == nil {
		fmt.Printf("hello %s\n", row["f"][0].Value)
	}
	return err
}

func run(ctx context.Context, arguments []string) error {
	var options []option.ClientOption
	var err error
	if arguments[0] != "" {
		options, err = connection(arguments[0], arguments[1], arguments[2])
	}
	if err != nil {
		return err
	}
	client, err := open(ctx, options)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, step := range arguments[3:] {
		switch step {
		case "create":
			err = create(ctx, options)
		case "write":
			err = write(ctx, client.Open("greetings"))
		case "read":
			err = read(ctx, client.Open("greetings"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
