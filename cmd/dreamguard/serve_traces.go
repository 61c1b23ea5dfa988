package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// tracesTo sends spans to a collector, in batches and in the background: one that is
// slow or gone costs no verdict its time, and loses spans.
func tracesTo(ctx context.Context, url string) (*trace.TracerProvider, error) {
	e, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
	if err != nil {
		return nil, fmt.Errorf("serve: --otlp: %w", err)
	}
	return trace.NewTracerProvider(trace.WithBatcher(e), trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "dreamguard")))), nil
}
