"""What is wrong with a translation: each reason, with sentences written for it in the 23 languages of the paper."""

import tomllib
from itertools import permutations
from typing import Any

import pytest
from build_multilingual.checks import find_problem
from build_multilingual.masking import mask
from build_multilingual.recipe import RECIPES, ChecksTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_schemas import LANGUAGES

BRIDGE = (
    "The old bridge across the river was closed on Monday because the storm had damaged two of its stone pillars. "
    "Children now walk to school through the park, and the shopkeepers hope that the repairs will be finished before "
    "the summer festival."
)
TRANSLATIONS = {
    "arb_Arab": "أُغلق الجسر القديم فوق النهر يوم الاثنين لأن العاصفة ألحقت أضرارا باثنتين من دعائمه الحجرية. "
    "ويمشي الأطفال الآن إلى المدرسة عبر الحديقة، ويأمل أصحاب المتاجر أن تنتهي الإصلاحات قبل مهرجان الصيف.",
    "ces_Latn": "Starý most přes řeku byl v pondělí uzavřen, protože bouře poškodila dva z jeho kamenných pilířů. "
    "Děti nyní chodí do školy přes park a obchodníci doufají, že opravy budou dokončeny ještě před letní slavností.",
    "deu_Latn": "Die alte Brücke über den Fluss wurde am Montag gesperrt, weil der Sturm zwei ihrer steinernen "
    "Pfeiler beschädigt hatte. Die Kinder gehen jetzt durch den Park zur Schule, und die Ladenbesitzer hoffen, "
    "dass die Reparaturen vor dem Sommerfest abgeschlossen sind.",
    "ell_Grek": "Η παλιά γέφυρα πάνω από το ποτάμι έκλεισε τη Δευτέρα, επειδή η καταιγίδα είχε προκαλέσει ζημιές "
    "σε δύο από τους πέτρινους στύλους της. Τα παιδιά πηγαίνουν τώρα στο σχολείο μέσα από το πάρκο και οι "
    "καταστηματάρχες ελπίζουν ότι οι επισκευές θα τελειώσουν πριν από το καλοκαιρινό πανηγύρι.",
    "fra_Latn": "Le vieux pont sur la rivière a été fermé lundi parce que la tempête avait endommagé deux de ses "
    "piliers de pierre. Les enfants vont maintenant à l'école à pied en traversant le parc, et les commerçants "
    "espèrent que les travaux seront terminés avant la fête de l'été.",
    "heb_Hebr": "הגשר הישן מעל הנהר נסגר ביום שני משום שהסערה פגעה בשניים מעמודי האבן שלו. הילדים הולכים עכשיו "
    "לבית הספר דרך הפארק, ובעלי החנויות מקווים שהתיקונים יסתיימו לפני פסטיבל הקיץ.",
    "hin_Deva": "नदी पर बना पुराना पुल सोमवार को बंद कर दिया गया क्योंकि तूफ़ान ने उसके पत्थर के दो खंभों को "
    "नुकसान पहुँचाया था। बच्चे अब पार्क से होकर पैदल स्कूल जाते हैं, और दुकानदारों को उम्मीद है कि मरम्मत गर्मियों "
    "के मेले से पहले पूरी हो जाएगी।",
    "ind_Latn": "Jembatan tua di atas sungai itu ditutup pada hari Senin karena badai telah merusak dua tiang "
    "batunya. Anak-anak sekarang berjalan kaki ke sekolah melalui taman, dan para pemilik toko berharap "
    "perbaikannya selesai sebelum festival musim panas.",
    "ita_Latn": "Il vecchio ponte sul fiume è stato chiuso lunedì perché la tempesta aveva danneggiato due dei "
    "suoi pilastri di pietra. Adesso i bambini vanno a scuola a piedi attraverso il parco e i negozianti sperano "
    "che le riparazioni siano finite prima della festa d'estate.",
    "jpn_Jpan": "川に架かる古い橋は、嵐で石の橋脚が二本壊れたため、月曜日に通行止めになりました。子どもたちは今、公"
    "園を通って歩いて学校に通っており、店の人たちは夏祭りまでに修理が終わることを願っています。",
    "kor_Hang": "강을 가로지르는 오래된 다리는 폭풍으로 돌기둥 두 개가 손상되어 월요일에 통행이 금지되었습니다. "
    "아이들은 이제 공원을 지나 걸어서 학교에 다니고, 가게 주인들은 여름 축제 전에 수리가 끝나기를 바라고 있습니다.",
    "nld_Latn": "De oude brug over de rivier werd maandag gesloten omdat de storm twee van haar stenen pijlers had "
    "beschadigd. De kinderen lopen nu door het park naar school en de winkeliers hopen dat de reparaties vóór het "
    "zomerfeest klaar zijn.",
    "pes_Arab": "پل قدیمی روی رودخانه روز دوشنبه بسته شد، زیرا طوفان به دو ستون سنگی آن آسیب رسانده بود. بچه‌ها "
    "اکنون از میان پارک پیاده به مدرسه می‌روند و مغازه‌داران امیدوارند که تعمیرات پیش از جشنواره تابستانی به پایان "
    "برسد.",
    "pol_Latn": "Stary most nad rzeką został zamknięty w poniedziałek, ponieważ burza uszkodziła dwa z jego "
    "kamiennych filarów. Dzieci chodzą teraz do szkoły przez park, a sklepikarze mają nadzieję, że naprawa skończy "
    "się przed letnim festynem.",
    "por_Latn": "A ponte velha sobre o rio foi fechada na segunda-feira porque a tempestade tinha danificado dois "
    "dos seus pilares de pedra. As crianças vão agora a pé para a escola pelo parque, e os lojistas esperam que as "
    "obras terminem antes da festa de verão.",
    "ron_Latn": "Podul vechi de peste râu a fost închis luni pentru că furtuna avariase doi dintre stâlpii săi de "
    "piatră. Copiii merg acum pe jos la școală prin parc, iar comercianții speră că reparațiile se vor termina "
    "înainte de sărbătoarea de vară.",
    "rus_Cyrl": "Старый мост через реку закрыли в понедельник, потому что буря повредила две его каменные опоры. "
    "Дети теперь ходят в школу через парк, а владельцы магазинов надеются, что ремонт закончится до летнего "
    "праздника.",
    "spa_Latn": "El viejo puente sobre el río se cerró el lunes porque la tormenta había dañado dos de sus pilares "
    "de piedra. Los niños van ahora a la escuela a pie por el parque, y los comerciantes esperan que las "
    "reparaciones terminen antes de la fiesta de verano.",
    "tur_Latn": "Nehrin üzerindeki eski köprü, fırtına taş ayaklarından ikisine zarar verdiği için pazartesi günü "
    "kapatıldı. Çocuklar artık okula parkın içinden yürüyerek gidiyor ve dükkân sahipleri onarımın yaz şenliğinden "
    "önce bitmesini umuyor.",
    "ukr_Cyrl": "Старий міст через річку закрили в понеділок, бо буря пошкодила дві його кам'яні опори. Діти тепер "
    "ходять до школи через парк, а власники крамниць сподіваються, що ремонт закінчиться до літнього свята.",
    "vie_Latn": "Cây cầu cũ bắc qua sông đã bị đóng cửa vào thứ Hai vì cơn bão làm hư hại hai trụ đá của nó. Trẻ "
    "em bây giờ đi bộ đến trường qua công viên, và các chủ cửa hàng hy vọng việc sửa chữa sẽ hoàn thành trước lễ "
    "hội mùa hè.",
    "zho_Hans": "横跨河面的老桥因为暴风雨损坏了两根石柱，星期一被封闭了。孩子们现在穿过公园走路去上学，店主们希望修"
    "理工作能在夏季节日之前完成，让大家重新从桥上走过。",
    "zho_Hant": "橫跨河面的老橋因為暴風雨損壞了兩根石柱，星期一被封閉了。孩子們現在穿過公園走路去上學，店主們希望修"
    "理工作能在夏季節日之前完成，讓大家重新從橋上走過。",
}
LIMITS = ChecksTable()
ANY_LENGTH = ChecksTable(shortest=0.001, longest=1000.0)


def problem(english: str, translated: str, code: str, limits: ChecksTable = LIMITS) -> str:
    return find_problem(mask(english), translated, LANGUAGES[code], limits)


def name(code: str) -> str:
    """How a reason calls a language, of which Chinese is one."""
    return LANGUAGES[code].short_name


def test_every_language_of_the_paper_has_a_translation() -> None:
    paper = tomllib.loads((RECIPES / "paper.toml").read_text(encoding="utf-8"))
    assert TRANSLATIONS.keys() == {*paper["languages"]}


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_translation_into_another_language_is_named(code: str) -> None:
    for claimed in TRANSLATIONS:
        result = problem(BRIDGE, TRANSLATIONS[code], claimed, ANY_LENGTH)
        if claimed == code:
            assert result == ""
        elif name(claimed) == "Chinese" == name(code):
            assert result == "in the other Chinese script"
        else:
            assert result == f"reads as {name(code)}", claimed


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_english_that_is_left_is_named(code: str) -> None:
    assert problem(BRIDGE, BRIDGE, code) == "unchanged"
    assert problem(BRIDGE, BRIDGE.upper(), code) == "unchanged"
    assert (
        problem(BRIDGE, BRIDGE.replace("Monday", "2.").replace("the ", "the… "), code, ANY_LENGTH) == "reads as English"
    )


@pytest.mark.parametrize(("code", "other"), list(permutations(("zho_Hans", "zho_Hant"))))
def test_chinese_of_two_scripts(code: str, other: str) -> None:
    half = TRANSLATIONS[code].partition("。")[0] + "。" + TRANSLATIONS[other].partition("。")[2]
    assert problem(BRIDGE, half, code) == "in both Chinese scripts"
    assert problem("Yes.", {"zho_Hans": "對嗎？", "zho_Hant": "对吗？"}[code], code) == "in the other Chinese script"
    assert problem("The book.", "大山小水", code) == ""  # as it is written in both


def test_from_how_many_letters_the_language_is_judged() -> None:
    spanish, japanese = TRANSLATIONS["spa_Latn"], TRANSLATIONS["jpn_Jpan"]
    least = ChecksTable(shortest=0.001, longest=1000.0, least_characters_langid=60)
    assert problem(BRIDGE, first_letters(spanish, 59), "deu_Latn", least) == ""
    assert problem(BRIDGE, first_letters(spanish, 60), "deu_Latn", least) == "reads as Spanish"
    for claimed in ("kor_Hang", "zho_Hans", "zho_Hant"):
        assert problem(BRIDGE, first_letters(japanese, 20), claimed, least) == "reads as Japanese"
        assert not problem(BRIDGE, first_letters(japanese, 19), claimed, least).startswith("reads as")


@pytest.mark.parametrize(
    "names",
    [
        "Marie Curie, Albert Einstein, Niels Bohr, Isaac Newton, Galileo Galilei",
        "London, Paris, Berlin, Madrid, Tokyo, New York, Sydney, Toronto, Lima",
    ],
)
def test_names_are_of_no_language(names: str) -> None:
    english = f"Here is the list that you wanted: {names}."
    assert problem(english, f"Aquí está la lista: {names}.", "spa_Latn") == ""
    assert problem(english, names, "spa_Latn") == ""
    certain = ChecksTable(least_confidence=0.0)
    assert problem(english, names, "spa_Latn", certain).startswith("reads as ")
    assert problem(BRIDGE, TRANSLATIONS["por_Latn"], "spa_Latn", ChecksTable(least_confidence=0.99)) != ""


def first_letters(text: str, count: int) -> str:
    """The beginning of a text up to its `count`th character that is no blank."""
    places = [place for place, character in enumerate(text) if not character.isspace()]
    return text[: places[count - 1] + 1]


@pytest.mark.parametrize("code", ["deu_Latn", "jpn_Jpan", "kor_Hang", "zho_Hant"])
def test_the_length_that_is_just_right(code: str) -> None:
    usual = LANGUAGES[code].length
    english = "word " * 50  # 200 letters
    letter = TRANSLATIONS[code].strip()[0]
    limits = ChecksTable(shortest=0.5, longest=2.0, least_characters_langid=10_000)
    for factor, reason in ((0.48, "too short"), (0.52, ""), (1.0, ""), (1.96, ""), (2.04, "too long")):
        assert problem(english, letter * round(200 * usual * factor), code, limits) == reason, factor


@pytest.mark.parametrize(
    ("english", "translated", "reason"),
    [
        ("Good morning.", "", "empty"),
        ("Good morning.", " \n\u00a0", "empty"),
        ("Good morning.", "… 1!", "no letters"),
        ("Good morning.", "_", "no letters"),
        ("Good morning.", "Good  Morning!", "unchanged"),
        ("Good morning.", "Buenos días.", ""),
        # What has to survive is no reason to call a text unchanged, nor is it counted.
        ("See `print(x)` and https://example.org/a.", "Vea y.", ""),
        ("See `print(x)` and https://example.org/a.", "See and", "unchanged"),
        # Nothing to translate, nothing to be wrong.
        ("", "", ""),
        ("3 + 4 = 7", "", ""),
        ("`code`", "", ""),
        ("Paris", "Paris", ""),
        ("Shakespeare.", "Shakespeare", ""),
        ("OK", "ok", ""),
    ],
)
def test_what_is_wrong_beside_language_and_length(english: str, translated: str, reason: str) -> None:
    assert problem(english, translated, "spa_Latn") == reason


@pytest.mark.parametrize("english", ["Marie Curie", "New York", "William Shakespeare, London", "Windows XP", "Élise"])
def test_a_name_may_stay(english: str) -> None:
    assert problem(english, english, "deu_Latn") == ""


@pytest.mark.parametrize("english", ["Marie's tea", "Good morning", "The Old Man And The Sea", "e-mail it"])
def test_what_is_no_name_may_not_stay(english: str) -> None:
    assert problem(english, english, "deu_Latn") == "unchanged"


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.text(st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=60)
def test_any_two_texts_are_judged(english: str, translated: str) -> None:
    reasons: Any = ("", "empty", "no letters", "unchanged", "too short", "too long", "in the other Chinese script")
    for code in ("vie_Latn", "zho_Hans"):
        result = problem(english, translated, code)
        assert result in {*reasons, "in both Chinese scripts"} or result.startswith("reads as ")
