package fault

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"deerbot/runtime/model"
)

func TestC145Classify(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   model.Class
	}{
		// C145
		{400, `{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}`, model.ClassOverflow},
		{400, `{"error":{"message":"The input (263000 tokens) is longer than the model's context length (262144 tokens)."}}`, model.ClassOverflow},
		{400, `{"error":{"code":"context_length_exceeded","message":"You passed 99073 input tokens and requested 1 output tokens."}}`, model.ClassOverflow},
		{429, `{"error":{"message":"Too many tokens, please wait before trying again."}}`, model.ClassRate},
		// more of both, as providers word them
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":null}}`, model.ClassOverflow},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.ClassOverflow},
		{400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000\"}}", model.ClassOverflow},
		{413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, model.ClassOverflow},
		{400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, model.ClassOverflow},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`, model.ClassOverflow},
		{400, `{"error":{"message":"Your request exceeded model token limit: 131072","type":"invalid_request_error"}}`, model.ClassOverflow},
		{400, `{"error":{"message":"Range of input length should be [1, 30720]","code":"invalid_parameter_error"}}`, model.ClassOverflow},
		{400, `{"error":{"message":"输入长度超过模型最大上下文限制"}}`, model.ClassOverflow},
		{400, `{"error":{"message":"提示词过长，请缩短后重试"}}`, model.ClassOverflow},
		{500, `{"error":{"message":"context size has been exceeded"}}`, model.ClassOverflow},
		{429, `{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ClassOverflow},
		{429, `{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 2s.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ClassRate},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}`, model.ClassRate},
		{400, `{"error":{"message":"Requests to the model have exceeded the token rate limit per minute."}}`, model.ClassRate},
		{429, `{"error":{"message":"请求过于频繁，请稍后再试"}}`, model.ClassRate},
		{400, `{"error":{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded"}}`, model.ClassRate},
		// quota
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, model.ClassQuota},
		{429, `[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 35.2s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"RetryInfo","retryDelay":"35s"}]}}]`, model.ClassRate},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, model.ClassQuota},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, model.ClassQuota},
		{429, `{"error":{"code":"1113","message":"您的账户已欠费，请充值后重试"}}`, model.ClassQuota},
		{403, `{"error":{"message":"账户余额不足"}}`, model.ClassQuota},
		// others
		{401, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`, model.ClassAuth},
		{400, `{"error":{"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","code":400}}`, model.ClassAuth},
		{403, `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`, model.ClassAuth},
		{404, `{"error":"model 'x' not found, try pulling it first"}`, model.ClassBadRequest},
		{400, `{"error":{"message":"Unsupported parameter: 'max_tokens'"}}`, model.ClassBadRequest},
		{422, `{"detail":[{"msg":"field required","loc":["body"]}]}`, model.ClassBadRequest},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.ClassOverload},
		{429, `{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded, please try again later"}}`, model.ClassOverload},
		{503, `no healthy upstream`, model.ClassOverload},
		{502, `<html><body><h1>502 Bad Gateway</h1></body></html>`, model.ClassOverload},
		{500, ``, model.ClassOverload},
		{408, ``, model.ClassOverload},
		// inside a stream
		{200, `{"error":{"message":"Provider returned error","code":502}}`, model.ClassOverload},
		{200, `{"error":{"message":"rate limited upstream: too many requests"}}`, model.ClassRate},
		{200, `{"error":{"type":"api_error","message":"Internal server error"}}`, model.ClassOverload},
		{200, `{"error":{"message":"服务器繁忙"}}`, model.ClassOverload},
	} {
		e := Answer{Provider: "p", Model: "m", Status: tc.status, Header: http.Header{}, Detail: ParseBody([]byte(tc.body))}.Error(time.Now())
		if e.Class != tc.want {
			t.Errorf("%d %s: %s, want %s", tc.status, tc.body, e.Class, tc.want)
		}
		if e.Image {
			t.Errorf("%d %s: taken as a refusal of a picture", tc.status, tc.body)
		}
	}
}

func TestC155Image(t *testing.T) {
	for _, msg := range []string{
		"Invalid PNG image.", "Could not process image", "You uploaded an unsupported image. Please make sure your image is below 20 MB in size and is of one of the following formats",
		"Invalid base64 image_url.", "messages.0.content.1.image.source.base64: The image was specified using the image/png media type, but the image appears to be an invalid image",
		"image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", "No endpoints found that support image input", "This model does not support images", "图片解析失败", "不支持的图片格式",
	} {
		e := Answer{Status: 400, Detail: Detail{Message: msg}}.Error(time.Now())
		if !e.Image || e.Class != model.ClassBadRequest {
			t.Errorf("%s: class %s, image %v", msg, e.Class, e.Image)
		}
	}
	if e := (Answer{Status: 500, Detail: Detail{Message: "image service failed"}}).Error(time.Now()); e.Image {
		t.Error("a server error is no refusal")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		header, ms, text string
		want             time.Duration
	}{
		{"7", "", "", 7 * time.Second},
		{"0.5", "", "", 500 * time.Millisecond},
		{"1500ms", "", "", 1500 * time.Millisecond},
		{"Sun, 01 Mar 2026 12:00:20 GMT", "", "", 20 * time.Second},
		{"Sun, 01 Mar 2026 11:00:00 GMT", "", "", 0},
		{"7", "250", "", 250 * time.Millisecond},
		{"-3", "", "", 0},
		{"1e300", "", "", maxRetryAfter},
		{"NaN", "", "", 0},
		{"soon", "", "", 0},
		{"", "", "Please try again in 20s.", 20 * time.Second},
		{"", "", "Please try again in 350ms.", 350 * time.Millisecond},
		{"", "", "Please retry in 35.5s", 35500 * time.Millisecond},
		{"", "", "try again after 2 minutes", 2 * time.Minute},
		{"", "", "try again later", 0},
	} {
		h := http.Header{}
		if tc.header != "" {
			h.Set("Retry-After", tc.header)
		}
		if tc.ms != "" {
			h.Set("Retry-After-Ms", tc.ms)
		}
		if got := retryAfter(h, tc.text, now); got != tc.want {
			t.Errorf("%+v: %v, want %v", tc, got, tc.want)
		}
	}
}

func TestC204Clean(t *testing.T) {
	const secret = "SECRET1234567890"
	for _, text := range []string{
		"key SECRET1234567890 is wrong", "Authorization: Bearer sk-SECRET1234567890", `{"Authorization":"Bearer abcSECRETdef"}`,
		"https://user:SECRETpw@host/v1?key=SECRETx#SECRET", `Post "https://host/v1?api_key=SECRET1": reset`, "api_key=SECRETabc123", "x-api-key: SECRETabc",
		"Incorrect API key provided: sk-proj-SECRET******abcd.", "token: SECRETtoken1", "ak-SECRETSECRET12", "url-encoded SECRET1234567890",
	} {
		if got := Clean(text, secret); strings.Contains(got, "SECRET") {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{
		"This model's maximum context length is 8192 tokens: reduce it", "see https://host/docs for more", "tokens: 5", "余额不足 😀",
		"task-oriented messages are fine", "the token limit is 100000",
	} {
		if got := Clean(text, "", "abc"); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := Clean(strings.Repeat("长", 2000)); len([]rune(got)) != 500 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d characters", len([]rune(got)))
	}
	if got := Clean("a\x00b\nc\xff"); got != "a b c�" {
		t.Errorf("%q", got)
	}
}

func FuzzParseBody(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"x","code":1}}`, `[{"error":"x"}]`, `{"detail":[{"msg":"m"}]}`, `<html>x`, `{"error":{"metadata":{"raw":"{}"}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := Answer{Status: 400, Header: http.Header{}, Detail: ParseBody(b), Secrets: []string{"SECRETVALUE"}}.Error(time.Unix(0, 0))
		if strings.Contains(e.Error(), "SECRETVALUE") || len([]rune(e.Message)) > 500 || e.Class == "" {
			t.Errorf("%q: %v", b, e)
		}
	})
}
