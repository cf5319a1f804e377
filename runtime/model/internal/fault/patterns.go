package fault

import (
	"regexp"

	"deerbot/runtime/model"
)

// codes maps machine-readable codes and types, lower case, to classes. Codes that are sent for several reasons
// (invalid_request_error, bad_request) are left out on purpose.
var codes = map[string]model.Class{
	"context_length_exceeded":       model.ClassOverflow,
	"model_context_window_exceeded": model.ClassOverflow,
	"context_window_exceeded":       model.ClassOverflow,
	"contextwindowexceedederror":    model.ClassOverflow,
	"exceed_context_size_error":     model.ClassOverflow, // llama.cpp
	"request_too_large":             model.ClassOverflow,
	"string_above_max_length":       model.ClassOverflow,

	"insufficient_quota":           model.ClassQuota,
	"insufficient_balance":         model.ClassQuota,
	"insufficient_credits":         model.ClassQuota,
	"billing_error":                model.ClassQuota,
	"billing_hard_limit_reached":   model.ClassQuota,
	"billing_not_active":           model.ClassQuota,
	"exceeded_current_quota_error": model.ClassQuota, // Moonshot
	"enforced_spend_limit_reached": model.ClassQuota,
	"contract_spend_limit_reached": model.ClassQuota,
	"arrearage":                    model.ClassQuota, // Model Studio
	"1113":                         model.ClassQuota, // Zhipu

	"rate_limit_exceeded":      model.ClassRate,
	"rate_limit_error":         model.ClassRate,
	"rate_limit_reached_error": model.ClassRate,
	"ramp_limit_exceeded":      model.ClassRate,
	"too_many_requests":        model.ClassRate,
	"resource_exhausted":       model.ClassRate,
	"throttling":               model.ClassRate,
	"throttling.ratequota":     model.ClassRate,
	"throttlingexception":      model.ClassRate,
	"1302":                     model.ClassRate, // Zhipu
	"1305":                     model.ClassRate,

	"invalid_api_key":            model.ClassAuth,
	"authentication_error":       model.ClassAuth,
	"invalid_authentication":     model.ClassAuth,
	"permission_error":           model.ClassAuth,
	"permission_denied":          model.ClassAuth,
	"unauthenticated":            model.ClassAuth,
	"account_deactivated":        model.ClassAuth,
	"invalidapikey":              model.ClassAuth,
	"incorrect_api_key_provided": model.ClassAuth,

	"overloaded_error":             model.ClassOverload,
	"overloaded":                   model.ClassOverload,
	"engine_overloaded_error":      model.ClassOverload,
	"engine_overloaded":            model.ClassOverload,
	"server_overloaded":            model.ClassOverload,
	"service_unavailable":          model.ClassOverload,
	"unavailable":                  model.ClassOverload,
	"compaction_unavailable":       model.ClassOverload,
	"insufficient_system_resource": model.ClassOverload, // DeepSeek
	"timeout_error":                model.ClassOverload,

	"not_found_error":                  model.ClassBadRequest,
	"model_not_found":                  model.ClassBadRequest,
	"invalid_image_format":             model.ClassBadRequest,
	"image_parse_error":                model.ClassBadRequest,
	"content_filter":                   model.ClassBadRequest,
	"content_policy_violation":         model.ClassBadRequest,
	"responsibleaipolicyviolation":     model.ClassBadRequest,
	"data_inspection_failed":           model.ClassBadRequest,
	"unsupported_parameter":            model.ClassBadRequest,
	"unsupported_value":                model.ClassBadRequest,
	"unknown_parameter":                model.ClassBadRequest,
	"unsupported_country_region_error": model.ClassBadRequest,
}

// Wording, English and Chinese, matched against lower-case text.
var (
	overflowWords = regexp.MustCompile(`context[_ -]?(?:length|window|size|limit)|maximum (?:prompt|input) length|maximum allowed input length` +
		`|(?:prompt|input|request|conversation|message)s?(?: is| are|'s)? (?:too long|too large)|exceed\w* (?:the )?(?:model'?s? )?(?:max\w* )?(?:number of )?(?:input )?tokens?\b` +
		`|input (?:length|token count)\b.{0,80}exceed|exceed\w*\b.{0,60}\binput (?:length|tokens)|exceeded model token limit|range of input length should be` +
		`|reduce the length of (?:the|your)|too many (?:input |prompt )?tokens` +
		`|上下文.{0,24}(?:超|过长|长度|限制|窗口)|(?:超|大于).{0,16}上下文|(?:输入|提示词|消息|内容|请求).{0,16}(?:过长|太长)|(?:输入|token|tokens).{0,24}超(?:过|出|限)|超(?:过|出).{0,24}(?:最大长度|token|输入长度|长度限制)`)

	rateWords = regexp.MustCompile(`rate[ _-]?limit|too many requests|per (?:minute|second|hour|day)\b|\b[rt]p[md]\b|please wait|slow down|throttl|concurren\w+ (?:limit|request)|requests? limit` +
		`|请求.{0,6}(?:频繁|过多|过快)|频率|限流|限速|速率|并发|稍后.{0,4}(?:再试|重试)|每分钟`)

	// tooLargeForRate is a request that no waiting makes fit under a token-per-minute limit.
	tooLargeForRate = regexp.MustCompile(`request too large for`)

	quotaWords = regexp.MustCompile(`insufficient[ _](?:quota|balance|credit|fund)|exceeded your current quota|credit balance is too low|out of credits?|not enough credits?|no credits? left|billing|payment required|spend(?:ing)? limit|usage limit reached` +
		`|余额不足|余额.{0,6}(?:不足|为零)|欠费|充值|(?:配额|额度).{0,10}(?:不足|用尽|耗尽|用完|超)`)

	authWords = regexp.MustCompile(`api key (?:is )?(?:not valid|invalid|expired)|(?:invalid|incorrect|missing|no|wrong|expired)[ _](?:x-)?(?:api[ _-]?key|auth\w*|token|credential)|unauthori[sz]ed|authentication (?:failed|fails|error)|permission denied` +
		`|(?:密钥|令牌|api ?key).{0,8}(?:无效|错误|过期|不正确)|鉴权|认证失败|身份验证|未授权|无权`)

	overloadWords = regexp.MustCompile(`overload|at capacity|capacity (?:constraint|exceeded)|server (?:is )?busy|temporarily unavailable|try again later|internal (?:server )?error|bad gateway|gateway time-?out` +
		`|繁忙|过载|服务不可用|服务异常|内部错误`)

	aboutImage = regexp.MustCompile(`(?:image|picture|\bpng\b|\bjpe?g\b|\bwebp\b|\bgif\b|media[_ ]type|base64).{0,80}(?:invalid|unsupported|not supported|could not|cannot|unable|fail|decod|corrupt|exceed|too large|too small|not valid|dimension|not allowed)` +
		`|(?:invalid|unsupported|could not|cannot|can't|unable|fail\w*|corrupt\w*|not support|does not support|no endpoints? found that support).{0,80}(?:image|picture|\bpng\b|\bjpe?g\b|vision|base64)` +
		`|(?:图片|图像|图).{0,20}(?:无效|格式|解析|失败|过大|不支持|损坏|错误)|(?:无效|不支持|无法).{0,20}(?:图片|图像)`)
)
