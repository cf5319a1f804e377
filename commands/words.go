package commands

import "deerbot/cards/phrase"

// Help texts.
var (
	shortHelp   = phrase.New("list the commands, or explain one", "列出命令，或说明某个命令")
	shortNew    = phrase.New("start a fresh conversation here", "在这里开始新的对话")
	shortStop   = phrase.New("stop the run that is working", "停止正在进行的任务")
	shortStatus = phrase.New("how the run and the bot are doing", "查看任务与机器人的状态")
	shortRetry  = phrase.New("run the last turn again", "重新执行上一轮")
	shortFiles  = phrase.New("files of this conversation, or one of them again", "列出本对话的文件，或重发其中一个")
	shortWhoami = phrase.New("your id and rights here", "查看你的 ID 与权限")
	shortModel  = phrase.New("show or choose the model of this conversation", "查看或选择本对话的模型")
	shortModels = phrase.New("list the models", "列出模型")

	longHelp = phrase.New(
		"Without a name it lists every command. With one it explains that command.",
		"不带名称时列出全部命令；带名称时说明该命令。")
	longNew = phrase.New(
		"The conversation starts empty: nothing said before reaches the model. A run that is working is stopped first. Files made before are kept.",
		"对话从空白开始：之前说过的内容不会再交给模型。正在进行的任务会先停止。之前产生的文件保留。")
	longStop = phrase.New(
		"Stops at once. What was written so far stays, and messages that wait are kept and listed. `/cancel` does the same.",
		"立即停止。已写出的内容保留，等待中的消息也保留并列出。`/cancel` 作用相同。")
	longStatus = phrase.New(
		"Shows the run with its step, time, tokens and cost, how many messages wait, the model, the thread, and the channels.",
		"显示任务的步骤、用时、token 与费用，等待中的消息数，模型、会话，以及各频道的状态。")
	longRetry = phrase.New(
		"Goes back to before your last message here and takes it again, without the answer it got.",
		"回到你在这里的上一条消息之前，重新处理它，不带原来的回答。")
	longFiles = phrase.New(
		"Lists the files made in this conversation with their numbers. `/files 2` sends number 2 again.",
		"列出本对话产生的文件及其编号。`/files 2` 重发第 2 个。")
	longWhoami = phrase.New(
		"Shows the id by which the bot knows you. An operator can put it into `allow` or `admins` of the configuration.",
		"显示机器人识别你的 ID。管理员可以把它写入配置的 `allow` 或 `admins`。")
	longModel = phrase.New(
		"Without a name it shows the model in use. With one, this conversation uses that model from the next run on.",
		"不带名称时显示当前模型；带名称时，本对话从下一次任务起使用该模型。")
	longModels = phrase.New(
		"Lists the configured models and marks the one in use here.",
		"列出已配置的模型，并标出这里正在使用的那个。")

	groupTitles = map[Group]phrase.Phrase{
		GroupConversation: phrase.New("Conversation", "对话"),
		GroupRun:          phrase.New("Run", "任务"),
		GroupModel:        phrase.New("Model", "模型"),
		GroupAbout:        phrase.New("About", "其他"),
	}

	msgHelpIntro = phrase.New("Write what you want done. In a group, mention me or reply to me.", "直接写下要做的事。在群里请 @我，或回复我的消息。")
	msgHelpMore  = phrase.New("`/help stop` explains one command.", "`/help stop` 说明单个命令。")
	msgAliases   = phrase.New("Also: %s", "也可写作：%s")
	msgDuringRun = phrase.New("Works while a run is active.", "任务进行中也可使用。")
	msgAfterRun  = phrase.New("Only while no run is active.", "仅在没有任务进行时可用。")
)

// Answers.
var (
	msgUnknown     = phrase.New("There is no command `/%s`. `/help` lists them all.", "没有命令 `/%s`。`/help` 列出全部命令。")
	msgUnknownNear = phrase.New("There is no command `/%s`. Did you mean `/%s`? Nothing was done.", "没有命令 `/%s`。是指 `/%s` 吗？未执行任何操作。")
	msgNotAllowed  = phrase.New("`/%s` is for operators. Ask one of them; `/whoami` tells your rights.", "`/%s` 仅限管理员使用。请联系管理员；`/whoami` 显示你的权限。")
	msgFailed      = phrase.New("`/%s` did not work. The conversation is as it was; try again, and if it stays so, an operator finds the cause in the log.", "`/%s` 未能执行。对话保持原样；请重试，若仍然失败，管理员可在日志中查到原因。")
	msgNoArgs      = phrase.New("`/%s` takes nothing after it. Write the rest as a message of its own; nothing was done.", "`/%s` 后面不带内容。请把其余内容另发一条消息；未执行任何操作。")

	msgNew        = phrase.New("New conversation. What was said before no longer reaches the model.", "新的对话已开始，之前的内容不再交给模型。")
	msgNewTitled  = phrase.New("New conversation: **%s**. What was said before no longer reaches the model.", "新的对话已开始：**%s**。之前的内容不再交给模型。")
	msgNewStopped = phrase.New("The run that was working was stopped.", "正在进行的任务已停止。")
	msgNewFailed  = phrase.New("The new conversation could not be started; the old one goes on. Try again.", "未能开始新的对话，原对话继续。请重试。")

	msgStopped    = phrase.New("Stopped. What was written so far stays.", "已停止，已写出的内容保留。")
	msgNotRunning = phrase.New("Nothing is running here.", "这里没有正在进行的任务。")
	msgWaiting    = phrase.New("Still waiting (%d):", "仍在等待（%d 条）：")

	msgRetrying     = phrase.New("Running the last turn again.", "正在重新执行上一轮。")
	msgRetryBusy    = phrase.New("A run is working here. Wait for its end, or `/stop` it first.", "这里有任务正在进行。请等它结束，或先用 `/stop` 停止。")
	msgNothingRetry = phrase.New("There is nothing to run again here. Send a message first.", "这里没有可以重新执行的内容。请先发送一条消息。")

	msgNoFiles    = phrase.New("There are no files in this conversation yet.", "本对话还没有文件。")
	msgFilesMore  = phrase.New("`/files %d` sends one again.", "`/files %d` 可重发其中一个。")
	msgFilesOlder = phrase.New("%d older files are not shown; their numbers come before these.", "另有 %d 个更早的文件未列出，编号在此之前。")
	msgFileSent   = phrase.New("Sent again: `%s`.", "已重发：`%s`。")
	msgFileNumber = phrase.New("There is no file of that number. Numbers go from 1 to %d; `/files` lists them.", "没有这个编号的文件。编号为 1 到 %d；`/files` 可列出。")
	msgFileFailed = phrase.New("`%s` could not be sent. It is kept; try again.", "`%s` 未能发送。文件仍保留，请重试。")

	msgWhoami      = phrase.New("You are %s on %s.", "你是 %s（%s）。")
	msgWhoamiID    = phrase.New("Id: `%s`", "ID：`%s`")
	msgWhoamiSpace = phrase.New("Workspace: `%s`", "工作区：`%s`")
	msgWhoamiRole  = phrase.New("Rights: %s", "权限：%s")
	msgWhoamiUser  = phrase.New("deerbot user: `%s`", "deerbot 用户：`%s`")

	roleWords = map[string]phrase.Phrase{
		RoleOperator: phrase.New("operator", "管理员"),
		RoleOwner:    phrase.New("owner", "所有者"),
		RoleMember:   phrase.New("member", "成员"),
	}

	msgModelNow       = phrase.New("This conversation uses `%s`.", "本对话使用 `%s`。")
	msgModelsMore     = phrase.New("`/models` lists the others.", "`/models` 列出其他模型。")
	msgModelSet       = phrase.New("This conversation uses `%s` from the next run on.", "从下一次任务起，本对话使用 `%s`。")
	msgModelSame      = phrase.New("This conversation uses `%s` already.", "本对话已在使用 `%s`。")
	msgModelNear      = phrase.New("There is no model `%s`. Did you mean `%s`? Nothing was changed.", "没有模型 `%s`。是指 `%s` 吗？未作更改。")
	msgModelUnknown   = phrase.New("There is no model `%s`. Nothing was changed; `/models` lists them.", "没有模型 `%s`，未作更改。`/models` 可列出。")
	msgModels         = phrase.New("Models", "模型")
	msgModelHere      = phrase.New("in use here", "这里正在使用")
	msgModelRehearsal = phrase.New("rehearsal, not a language model", "演练，并非语言模型")
	msgModelHow       = phrase.New("`/model name` chooses one for this conversation.", "`/model 名称` 为本对话选择模型。")
	msgNoModels       = phrase.New("No model is configured. Set one under `models` in the configuration.", "未配置模型。请在配置的 `models` 中设置。")
)

// Words of /status.
var (
	msgStatusIdle     = phrase.New("Nothing is running here.", "这里没有正在进行的任务。")
	msgStatusQueued   = phrase.New("A run waits for a free place, number %d.", "任务在排队，第 %d 位。")
	msgStatusRunning  = phrase.New("A run is working: step %d, %s.", "任务进行中：第 %d 步，%s。")
	msgStatusStopping = phrase.New("A run is being stopped.", "任务正在停止。")
	msgStatusSpent    = phrase.New("Tokens: %s", "Token：%s")
	msgStatusCost     = phrase.New("Cost: %s", "费用：%s")
	msgStatusQueue    = phrase.New("Messages waiting: %d", "等待中的消息：%d")
	msgStatusModel    = phrase.New("Model: `%s`", "模型：`%s`")
	msgStatusThread   = phrase.New("Thread: `%s`", "会话：`%s`")
	msgStatusTitle    = phrase.New("Thread: %s (`%s`)", "会话：%s（`%s`）")
	msgStatusGroups   = phrase.New("Answers in this group: %s", "在本群的应答方式：%s")
	msgStatusChannel  = phrase.New("%s: connected", "%s：已连接")
	msgStatusSince    = phrase.New("%s: connected for %s", "%s：已连接 %s")
	msgStatusTrouble  = phrase.New("%s: not working for %s: %s", "%s：已中断 %s：%s")
	msgStatusDown     = phrase.New("%s: not connected yet", "%s：尚未连接")
	msgStatusDaemon   = phrase.New("deerbot %s, up %s", "deerbot %s，已运行 %s")
	msgStatusMemory   = phrase.New("Memory: %s", "内存：%s")

	groupModes = map[string]phrase.Phrase{
		"mention": phrase.New("when mentioned or replied to", "被 @ 或被回复时"),
		"all":     phrase.New("to every message", "每条消息"),
		"off":     phrase.New("never", "不应答"),
	}
)
