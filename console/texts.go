package console

import "deerbot/cards/phrase"

// Texts of the login page.
var (
	textTitle  = phrase.New("Sign in", "登录")
	textHint   = phrase.New("Enter the token from server.auth_token.", "请输入 server.auth_token 中的令牌。")
	textLabel  = phrase.New("Token", "令牌")
	textButton = phrase.New("Sign in", "登录")
	textWrong  = phrase.New("This is not the token. Check server.auth_token and try again.",
		"令牌不正确。请核对 server.auth_token 后再试。")
	textSlow = phrase.New("Too many wrong tokens. Wait a few seconds and try again.", "错误次数过多。请稍等几秒再试。")
)

func loginTexts(lang, fault string) loginData {
	l := phrase.Lang(lang)
	d := loginData{
		Lang: lang, Title: textTitle.In(l), Hint: textHint.In(l), Label: textLabel.In(l), Button: textButton.In(l),
	}
	switch fault {
	case "wrong":
		d.Error = textWrong.In(l)
	case "slow":
		d.Error = textSlow.In(l)
	}
	return d
}
