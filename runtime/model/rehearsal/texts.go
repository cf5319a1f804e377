package rehearsal

import (
	"fmt"
	"strings"
)

// language is everything the stand-in says in one language.
type language struct {
	banner   string // says what this is; begins every answer
	greeting string
	connect  string
	opening  string
	writing  string
	plan     [3]string
	heading  string
	about    string
	request  string
	file     string // with %s
	steps    string // heading of the list of steps
	failed   string // with tool and message
	noTools  string
	did      map[string]string
}

var english = language{
	banner: "**This is the built-in rehearsal model: no language model is connected.** What you see is a fixed script, not an answer to your request.",
	greeting: "**This is the built-in rehearsal model: no language model is connected.** " +
		"Hello! I can only rehearse: send me a task of a sentence or two and I will act out how one is worked on.",
	connect: "To connect a real model, do one of these and restart:\n\n" +
		"- OpenAI or a compatible service: set `OPENAI_API_KEY`\n" +
		"- Anthropic: set `ANTHROPIC_API_KEY`\n" +
		"- Ollama, without a key: run `ollama serve`; on its usual port it is found by itself",
	opening: "This is a rehearsal. I will act out the steps of a real task.",
	writing: "Next I write a file.",
	plan:    [3]string{"Quote the request in a file", "Present the file", "Say how to connect a real model"},
	heading: "# Rehearsal",
	about:   "This file was written by the built-in rehearsal model. No language model was connected, and nothing in it was thought up or researched.",
	request: "The request was:",
	file:    "The file `%s` quotes your request.",
	steps:   "What was rehearsed:",
	failed:  "`%s` did not work: %s",
	noTools: "No tools were called.",
	did:     map[string]string{toolTodo: "a plan was made with `todo`", toolWrite: "a file was written with `write_file`", toolPresent: "the file was presented with `present_files`"},
}

var chinese = language{
	banner:   "**这是内置的排练模型：没有连接任何语言模型。** 您看到的是固定的脚本，不是对您请求的回答。",
	greeting: "**这是内置的排练模型：没有连接任何语言模型。** 你好！我只能排练：请发一两句话的任务，我会演示任务是怎样一步步完成的。",
	connect: "要连接真正的模型，请任选一种方式，然后重启：\n\n" +
		"- OpenAI 或兼容的服务：设置 `OPENAI_API_KEY`\n" +
		"- Anthropic：设置 `ANTHROPIC_API_KEY`\n" +
		"- Ollama（无需密钥）：运行 `ollama serve`，在默认端口上会被自动发现",
	opening: "这是一次排练，我来演示真实任务的步骤。",
	writing: "接下来写一个文件。",
	plan:    [3]string{"把请求引用到文件中", "展示文件", "说明如何连接真正的模型"},
	heading: "# 排练",
	about:   "本文件由内置的排练模型写成。没有连接任何语言模型，其中没有任何思考或调研的内容。",
	request: "请求内容：",
	file:    "文件 `%s` 引用了您的请求。",
	steps:   "排练了这些步骤：",
	failed:  "`%s` 没有成功：%s",
	noTools: "没有调用任何工具。",
	did:     map[string]string{toolTodo: "用 `todo` 列出了计划", toolWrite: "用 `write_file` 写了文件", toolPresent: "用 `present_files` 展示了文件"},
}

// report is the content of the file.
func (l *language) report(said string) string {
	return l.heading + "\n\n" + l.about + "\n\n" + l.request + "\n\n" + quoted(said) + "\n"
}

// closing is the last answer.
func (l *language) closing(s *scene, file string, written bool) string {
	var b strings.Builder
	b.WriteString(l.banner + "\n\n")
	var steps []string
	for _, tool := range []string{toolTodo, toolWrite, toolPresent} {
		if s.done[tool] && s.failed[tool] == "" {
			steps = append(steps, l.did[tool])
		}
	}
	for _, tool := range s.failures() {
		why := strings.Join(strings.Fields(s.failed[tool]), " ")
		if runes := []rune(why); len(runes) > 200 {
			why = string(runes[:200]) + "…"
		}
		steps = append(steps, fmt.Sprintf(l.failed, tool, why))
	}
	if len(steps) == 0 {
		b.WriteString(l.noTools + "\n\n")
	} else {
		b.WriteString(l.steps + "\n\n- " + strings.Join(steps, "\n- ") + "\n\n")
	}
	if written {
		fmt.Fprintf(&b, l.file+"\n\n", file)
	}
	b.WriteString(l.connect)
	return b.String()
}
