"""Words of several scripts, of which tests make texts."""

TEXT = (
    "a quiet hobby for somebody who lives by the sea and would rather not spend money on tools or lessons "
    "origami drumming swimming reading to children baking bread that keeps walking with an old dog at dawn "
    "ما هي أفضل هواية هادئة لمن يسكن قرب البحر 我 喜欢 喝 龙井 茶 请 推荐 一本 书 मैं चाय पीता हूँ 🍵 👨‍👩‍👧 🎈"
)
WORDS = TEXT.split()
