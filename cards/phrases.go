package cards

import (
	"deerbot/cards/phrase"
	"deerbot/store"
)

// Fixed texts of cards.
var (
	sayQueuedNext = phrase.New("Queued · next in line", "已排队 · 下一个")
	sayQueued     = phrase.New("Queued · number %d in line", "已排队 · 第 %d 位")
	sayThinking   = phrase.New("Thinking …", "思考中 …")
	sayWriting    = phrase.New("Writing …", "撰写中 …")
	sayWorking    = phrase.New("Working …", "处理中 …")
	sayCapped     = phrase.New("Ended early", "提前结束")
	sayStopped    = phrase.New("Stopped", "已停止")
	sayFailed     = phrase.New("Failed", "失败")

	sayPlan      = phrase.New("Plan %d/%d", "计划 %d/%d")
	sayMorePlan  = phrase.New("+%d more", "另有 %d 项")
	sayHidden    = phrase.New("%d earlier calls", "之前 %d 次调用")
	sayHiddenOne = phrase.New("1 earlier call", "之前 1 次调用")
	sayUnknown   = phrase.New("outcome unknown", "结果未知")

	saySubagents = phrase.New("Subagents %d/%d", "子任务 %d/%d")
	sayStepN     = phrase.New("step %d", "第 %d 步")

	saySteps   = phrase.New("%d steps", "%d 步")
	sayOneStep = phrase.New("1 step", "1 步")
	sayTokens  = phrase.New("%s tokens", "%s tokens")

	sayDoneIn       = phrase.New("done in %s", "完成，用时 %s")
	sayCappedAfter  = phrase.New("ended early after %s", "提前结束，用时 %s")
	sayStoppedAfter = phrase.New("stopped after %s", "已停止，用时 %s")
	sayFailedAfter  = phrase.New("failed after %s", "失败，用时 %s")

	sayResumed   = phrase.New("Picked up after a restart, step %d", "重启后继续，第 %d 步")
	sayRehearsal = phrase.New("Rehearsal: answers come from the scripted stand-in, not from a model", "演练：回答来自脚本，并非模型")
	sayGuardNear = phrase.New("Close to a limit: %s", "接近上限：%s")
	sayRetry     = phrase.New("%s; trying again in %s (attempt %d of %d)", "%s；%s后重试（第 %d/%d 次）")
	sayRetryNow  = phrase.New("%s; trying again (attempt %d of %d)", "%s；正在重试（第 %d/%d 次）")
)

// Classes of failed model calls, in words. What is not here is sayClassOther.
var (
	sayClassOther = phrase.New("The model could not be reached", "无法连接模型")
	sayClasses    = map[string]phrase.Phrase{
		"rate":     phrase.New("The model's rate limit is reached", "模型请求过于频繁"),
		"overload": phrase.New("The model is overloaded", "模型过载"),
		"network":  phrase.New("The connection to the model broke", "与模型的连接中断"),
		"stall":    phrase.New("The model went silent", "模型没有响应"),
		"timeout":  phrase.New("The model did not answer in time", "模型响应超时"),
		"protocol": phrase.New("The model's answer could not be read", "模型的回答无法解析"),
		"quota":    phrase.New("The model's credit is used up", "模型额度已用完"),
		"auth":     phrase.New("The model's key was refused", "模型密钥被拒绝"),
		"overflow": phrase.New("The conversation is longer than the model can take", "对话超出模型的上下文长度"),
	}
)

// Why a run ended, what was kept and what to do.
var (
	sayStopOther = phrase.New("It ended for the reason %q. What was done is kept; /retry runs the turn again.", "因 %q 结束。已完成的内容已保留；发送 /retry 可重新运行。")
	sayStops     = map[store.StopCode]phrase.Phrase{
		store.StopLoopCapped: phrase.New(
			"It kept repeating the same calls and was ended. What was found is kept; say what to try differently, or /retry.",
			"一直重复相同的调用，已被终止。已有结果已保留；请说明换个做法，或发送 /retry。"),
		store.StopTokenCapped: phrase.New(
			"It reached the token limit of one run. What was done is kept; send \"go on\" to continue, or narrow the task.",
			"达到单次运行的 token 上限。已完成的内容已保留；发送“继续”接着做，或缩小任务范围。"),
		store.StopCostCapped: phrase.New(
			"It reached the cost limit. What was done is kept; an operator can raise the limit, or narrow the task.",
			"达到费用上限。已完成的内容已保留；请管理员提高上限，或缩小任务范围。"),
		store.StopStepCapped: phrase.New(
			"It reached the step limit of one run. What was done is kept; send \"go on\" to continue.",
			"达到单次运行的步数上限。已完成的内容已保留；发送“继续”接着做。"),
		store.StopTimeCapped: phrase.New(
			"It reached the time limit of one run. What was done is kept; send \"go on\" to continue.",
			"达到单次运行的时间上限。已完成的内容已保留；发送“继续”接着做。"),
		store.StopSubagentCapped: phrase.New(
			"It reached the limit of subagents. The results that came back are used; ask for what is missing.",
			"达到子任务数量上限。已返回的结果均已采用；缺少的部分可以再问。"),
		store.StopSafetyCapped: phrase.New(
			"The model's provider held back the answer for safety. Put the request in other words.",
			"模型服务商出于安全原因未给出回答。请换一种说法。"),
		store.StopLengthCapped: phrase.New(
			"The answer reached the model's length limit. Send \"go on\" for the rest.",
			"回答达到模型的长度上限。发送“继续”获取其余部分。"),
		store.StopNoProgress: phrase.New(
			"Nothing moved for too long, so it was ended. What was done is kept; /retry runs the turn again.",
			"长时间没有进展，已被终止。已完成的内容已保留；发送 /retry 可重新运行。"),
		store.StopUserStop: phrase.New(
			"Stopped on request. What was written is kept; send a message to go on.",
			"已按要求停止。已写出的内容已保留；发送消息即可继续。"),
		store.StopInterrupted: phrase.New(
			"Interrupted by a newer message or a shutdown. What was done is kept; /retry runs the turn again.",
			"被新的消息或关机中断。已完成的内容已保留；发送 /retry 可重新运行。"),
		store.StopProviderError: phrase.New(
			"The model's provider failed. What was done is kept; /retry runs the turn again, /model chooses another model.",
			"模型服务商出错。已完成的内容已保留；发送 /retry 重新运行，或用 /model 换一个模型。"),
		store.StopToolDenied: phrase.New(
			"A tool that it needed was not allowed. Allow it, or ask for another way.",
			"所需的工具未被允许。请允许该工具，或换一种做法。"),
		store.StopGoalBlocked: phrase.New(
			"The goal is blocked by something only you can settle. Answer what it asks, then send \"go on\".",
			"目标受阻，需要你来处理。请回答它的问题，然后发送“继续”。"),
		store.StopRecovered: phrase.New(
			"It was ended after restarts in a row. What was done is kept; /retry runs the turn again.",
			"多次重启后被终止。已完成的内容已保留；发送 /retry 可重新运行。"),
		store.StopInternal: phrase.New(
			"An internal error ended it. What was done is kept; /retry runs the turn again, and the log has the details.",
			"内部错误导致结束。已完成的内容已保留；发送 /retry 可重新运行，详情见日志。"),
	}
)

// Reason puts one stop reason into words: what happened, what was kept, what to do. A plain end gives "".
func Reason(r store.StopReason, lang phrase.Lang) string {
	if r.Code == store.StopCompleted || r.Code == "" {
		return ""
	}
	s := ""
	if p, ok := sayStops[r.Code]; ok {
		s = p.In(lang)
	} else {
		s = sayStopOther.In(lang, string(r.Code))
	}
	if d := oneLine(r.Detail, maxDetail); d != "" {
		if lang == phrase.ZH {
			return s + "（" + d + "）"
		}
		return s + " (" + d + ")"
	}
	return s
}

const maxDetail = 160
