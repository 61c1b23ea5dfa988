package httpapi

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Names of spans and of their attributes. No attribute holds a payload.
const (
	spanVerdict = "dreamguard.verdict" // one verdict, from the session's lock to the log
	spanCommit  = "dreamguard.commit"  // what came of a call, or that it was not executed

	attrSession     = attribute.Key("dreamguard.session")
	attrJudgement   = attribute.Key("dreamguard.judgement")
	attrStep        = attribute.Key("dreamguard.step")
	attrDecision    = attribute.Key("dreamguard.decision")
	attrAction      = attribute.Key("dreamguard.action")
	attrReasons     = attribute.Key("dreamguard.reasons")
	attrRisk        = attribute.Key("dreamguard.risk")
	attrHazard      = attribute.Key("dreamguard.hazard")
	attrModel       = attribute.Key("dreamguard.model")
	attrCalibration = attribute.Key("dreamguard.calibration")
	attrCode        = attribute.Key("dreamguard.error.code")
	attrDuplicate   = attribute.Key("dreamguard.duplicate")
)

// tracer makes the spans of a provider, or none.
func tracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return p.Tracer("github.com/dreamguard/dreamguard/serve/httpapi")
}

// traced is the context of a request with the span of who sent it.
func traced(r *http.Request) context.Context {
	return propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
}

// endVerdict ends the span of a verdict.
func endVerdict(span trace.Span, a *judgeAnswer, err error) {
	defer span.End()
	if err != nil {
		endFailed(span, err)
		return
	}
	v := a.Verdict
	reasons := make([]string, len(v.Reasons))
	for i, r := range v.Reasons {
		reasons[i] = string(r)
	}
	span.SetAttributes(attrJudgement.Int(a.Judgement), attrStep.Int(a.Step), attrDecision.String(v.Decision.String()), attrAction.String(a.Action.String()),
		attrReasons.StringSlice(reasons), attrRisk.Float64(v.Risk), attrHazard.Float64(v.Hazard), attrModel.String(v.ModelDigest), attrCalibration.String(v.CalibrationDigest))
}

func endFailed(span trace.Span, err error) {
	code := failureOf(err).code
	span.SetAttributes(attrCode.String(code))
	span.SetStatus(codes.Error, code)
}
