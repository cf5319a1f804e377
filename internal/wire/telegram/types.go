package telegram

import "encoding/json"

// User is a Telegram account.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// me is User with the fields only getMe has.
type me struct {
	User
	CanJoinGroups           bool `json:"can_join_groups"`
	CanReadAllGroupMessages bool `json:"can_read_all_group_messages"`
	SupportsInlineQueries   bool `json:"supports_inline_queries"`
}

// Entity is a formatted stretch of a text; offsets count UTF-16 units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	User     *User  `json:"user,omitempty"`
	Language string `json:"language,omitempty"`
}

// Button is an inline button.
type Button struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data,omitempty"`
	URL   string `json:"url,omitempty"`
	Style string `json:"style,omitempty"`
}

type keyboard struct {
	Rows [][]Button `json:"inline_keyboard"`
}

type wireChat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

type wireFile struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileSize     int64  `json:"file_size,omitempty"`
	FilePath     string `json:"file_path,omitempty"`
	FileName     string `json:"file_name,omitempty"`
	MIME         string `json:"mime_type,omitempty"`
	Width        int    `json:"width,omitempty"`
	Height       int    `json:"height,omitempty"`
	Length       int    `json:"length,omitempty"`
	Duration     int    `json:"duration,omitempty"`
	Emoji        string `json:"emoji,omitempty"`
	Type         string `json:"type,omitempty"`
}

type textQuote struct {
	Text     string `json:"text"`
	Position int    `json:"position"`
	IsManual bool   `json:"is_manual,omitempty"`
}

type topicCreated struct {
	Name      string `json:"name"`
	IconColor int    `json:"icon_color"`
}

// wireMessage is a message as the API tells it.
type wireMessage struct {
	ID              int             `json:"message_id"`
	ThreadID        int             `json:"message_thread_id,omitempty"`
	From            *User           `json:"from,omitempty"`
	SenderChat      *wireChat       `json:"sender_chat,omitempty"`
	Date            int64           `json:"date"`
	Chat            wireChat        `json:"chat"`
	ForwardOrigin   json.RawMessage `json:"forward_origin,omitempty"`
	IsTopicMessage  bool            `json:"is_topic_message,omitempty"`
	ReplyTo         *wireMessage    `json:"reply_to_message,omitempty"`
	ExternalReply   json.RawMessage `json:"external_reply,omitempty"`
	Quote           *textQuote      `json:"quote,omitempty"`
	EditDate        int64           `json:"edit_date,omitempty"`
	MediaGroupID    string          `json:"media_group_id,omitempty"`
	Text            string          `json:"text,omitempty"`
	Entities        []Entity        `json:"entities,omitempty"`
	Animation       *wireFile       `json:"animation,omitempty"`
	Audio           *wireFile       `json:"audio,omitempty"`
	Document        *wireFile       `json:"document,omitempty"`
	Photo           []*wireFile     `json:"photo,omitempty"`
	Sticker         *wireFile       `json:"sticker,omitempty"`
	Video           *wireFile       `json:"video,omitempty"`
	VideoNote       *wireFile       `json:"video_note,omitempty"`
	Voice           *wireFile       `json:"voice,omitempty"`
	Caption         string          `json:"caption,omitempty"`
	CaptionEntities []Entity        `json:"caption_entities,omitempty"`
	MigrateTo       int64           `json:"migrate_to_chat_id,omitempty"`
	MigrateFrom     int64           `json:"migrate_from_chat_id,omitempty"`
	TopicCreated    *topicCreated   `json:"forum_topic_created,omitempty"`
	ReplyMarkup     *keyboard       `json:"reply_markup,omitempty"`
}

func (m *wireMessage) hasMedia() bool {
	return m.Animation != nil || m.Audio != nil || m.Document != nil || m.Photo != nil || m.Sticker != nil ||
		m.Video != nil || m.VideoNote != nil || m.Voice != nil
}

// apiError is a refusal.
type apiError struct {
	Code       int
	Text       string
	RetryAfter int
	MigrateTo  int64
}

func bad(text string) *apiError       { return &apiError{Code: 400, Text: "Bad Request: " + text} }
func forbidden(text string) *apiError { return &apiError{Code: 403, Text: "Forbidden: " + text} }
func conflict(text string) *apiError  { return &apiError{Code: 409, Text: "Conflict: " + text} }

type answer struct {
	OK          bool        `json:"ok"`
	Result      any         `json:"result,omitempty"`
	ErrorCode   int         `json:"error_code,omitempty"`
	Description string      `json:"description,omitempty"`
	Parameters  *parameters `json:"parameters,omitempty"`
}

type parameters struct {
	RetryAfter int   `json:"retry_after,omitempty"`
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
}
