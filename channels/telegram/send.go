package telegram

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"deerbot/cards"
	"deerbot/channels"
)

// Send implements channels.Channel. Telegram has no idempotency key: key is not used.
func (c *Channel) Send(ctx context.Context, to channels.Place, m channels.Message, _ string) (channels.Ref, error) {
	chat, topic, err := target("sendMessage", to)
	if err != nil {
		return channels.Ref{}, err
	}
	p := bot.SendMessageParams{
		ChatID: chat, MessageThreadID: topic, Text: m.Body.Text, ParseMode: parseMode(m.Body), DisableNotification: m.Silent,
		LinkPreviewOptions: noPreview, ReplyParameters: replyTo(m.ReplyTo), ReplyMarkup: keyboard(m.Body.Buttons),
	}
	var out models.MessageID
	if err := c.call(ctx, "sendMessage", p, &out); err != nil {
		return channels.Ref{}, err
	}
	return channels.Ref{Place: to, ID: strconv.Itoa(out.ID)}, nil
}

// Edit implements channels.Channel. A message that is a file gets a new caption.
func (c *Channel) Edit(ctx context.Context, ref channels.Ref, m channels.Message) error {
	chat, _, err := target("editMessageText", ref.Place)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(ref.ID)
	if err != nil {
		return refusedRef("editMessageText", ref)
	}
	err = c.call(ctx, "editMessageText", bot.EditMessageTextParams{
		ChatID: chat, MessageID: id, Text: m.Body.Text, ParseMode: parseMode(m.Body), LinkPreviewOptions: noPreview,
		ReplyMarkup: keyboard(m.Body.Buttons),
	}, nil)
	if refused(err, textNoText) {
		err = c.call(ctx, "editMessageCaption", bot.EditMessageCaptionParams{
			ChatID: chat, MessageID: id, Caption: m.Body.Text, ParseMode: parseMode(m.Body), ReplyMarkup: keyboard(m.Body.Buttons),
		}, nil)
		if refused(err, textNoCaption) { // a sticker or the like: it cannot become the text
			err = &channels.Gone{What: "message", Err: err}
		}
	}
	if refused(err, textNotModified) {
		return nil
	}
	return err
}

// Delete implements channels.Deleter. A message that is not there any more is success.
func (c *Channel) Delete(ctx context.Context, ref channels.Ref) error {
	chat, _, err := target("deleteMessage", ref.Place)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(ref.ID)
	if err != nil {
		return refusedRef("deleteMessage", ref)
	}
	err = c.call(ctx, "deleteMessage", bot.DeleteMessageParams{ChatID: chat, MessageID: id}, nil)
	if refused(err, "message to delete not found") {
		return nil
	}
	return err
}

// Typing implements channels.Typer; Telegram shows it for five seconds.
func (c *Channel) Typing(ctx context.Context, to channels.Place) error {
	chat, topic, err := target("sendChatAction", to)
	if err != nil {
		return err
	}
	return c.call(ctx, "sendChatAction", bot.SendChatActionParams{
		ChatID: chat, MessageThreadID: topic, Action: models.ChatActionTyping,
	}, nil)
}

// AnswerAction implements channels.ActionAnswerer. An answer that comes too late is dropped.
func (c *Channel) AnswerAction(ctx context.Context, id, notice string) error {
	err := c.call(ctx, "answerCallbackQuery", bot.AnswerCallbackQueryParams{
		CallbackQueryID: id, Text: shorten(notice, maxNotice),
	}, nil)
	if refused(err, textOldQuery) {
		return nil
	}
	return err
}

var noPreview = &models.LinkPreviewOptions{IsDisabled: bot.True()}

// target is chat and thread of a place; General has none.
func target(method string, p channels.Place) (chat int64, topic int, err error) {
	if chat, err = strconv.ParseInt(p.Chat, 10, 64); err != nil || chat == 0 {
		return 0, 0, wrong(method, fmt.Sprintf("chat %q is not a Telegram chat id", p.Chat))
	}
	if p.Topic == "" {
		return chat, 0, nil
	}
	if topic, err = strconv.Atoi(p.Topic); err != nil {
		return 0, 0, wrong(method, fmt.Sprintf("topic %q is not a Telegram thread id", p.Topic))
	}
	if topic == general {
		topic = 0
	}
	return chat, topic, nil
}

func refusedRef(method string, ref channels.Ref) error {
	return wrong(method, fmt.Sprintf("%q is not a Telegram message id", ref.ID))
}

func wrong(method, text string) error {
	return &channels.Refused{Err: &refusal{method: method, code: http.StatusBadRequest, text: text}}
}

// parseMode is how Telegram shall read the body.
func parseMode(b cards.Body) models.ParseMode {
	if b.Format == "html" {
		return models.ParseModeHTML
	}
	return ""
}

// replyTo answers a message, or nothing when it was deleted meanwhile.
func replyTo(id string) *models.ReplyParameters {
	n, err := strconv.Atoi(id)
	if err != nil || n <= 0 {
		return nil
	}
	return &models.ReplyParameters{MessageID: n, AllowSendingWithoutReply: true}
}

// keyboard is nil, and then takes a keyboard away on an edit, when there are no buttons.
func keyboard(rows [][]cards.Button) models.ReplyMarkup {
	if len(rows) == 0 {
		return nil
	}
	k := make([][]models.InlineKeyboardButton, 0, len(rows))
	for _, row := range rows {
		out := make([]models.InlineKeyboardButton, 0, len(row))
		for _, b := range row {
			out = append(out, models.InlineKeyboardButton{Text: b.Label, CallbackData: b.Action, Style: b.Style})
		}
		k = append(k, out)
	}
	return &models.InlineKeyboardMarkup{InlineKeyboard: k}
}
